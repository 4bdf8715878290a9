#include "platform/cgroup.h"

#include <algorithm>
#include <optional>

#include "platform/system_files.h"

namespace sluice::platform {
namespace {

bool Contains(std::string_view comma_list, std::string_view word) {
  const auto words = Split(comma_list, ',');
  return std::ranges::find(words, word) != words.end();
}

// This process's path inside a hierarchy.
struct Membership {
  bool v2;
  std::string path;
};

// /proc/self/cgroup has lines "number:controllers:path"; v2 has number 0 and no controllers. A controller is
// in one version at a time, and then named in a v1 line if that is the one.
std::optional<Membership> FindMembership(std::string_view table, std::string_view controller) {
  std::optional<Membership> result;
  for (const std::string_view line : Split(table, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (Contains(controllers, controller)) return Membership{false, path};
    if (line.starts_with("0::")) result = Membership{true, path};
  }
  return result;
}

struct Mount {
  std::string hierarchy_path;  // which part of the hierarchy is mounted: "/" or that of a container
  std::string folder;          // where
};

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string Unescape(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// Lines of /proc/self/mountinfo (proc(5)): id parent device ROOT MOUNT_POINT options tags… -
// TYPE source SUPER_OPTIONS.
std::vector<Mount> FindMounts(std::string_view table, bool v2, std::string_view controller) {
  std::vector<Mount> mounts;
  for (const std::string_view line : Split(table, '\n')) {
    const size_t separator = line.find(" - ");
    if (separator == std::string_view::npos) continue;
    const auto where = Split(line.substr(0, separator), ' ');
    const auto what = Split(line.substr(separator + 3), ' ');
    if (where.size() < 5 || what.size() < 3) continue;
    if (v2 ? what[0] != "cgroup2" : (what[0] != "cgroup" || !Contains(what[2], controller))) continue;
    mounts.push_back({Unescape(where[3]), Unescape(where[4])});
  }
  return mounts;
}

// `path` relative to `base` ("" or "/a/b"); nullopt when it isn't inside.
std::optional<std::string> RelativeTo(const std::string& path, const std::string& base) {
  std::string relative;
  if (base == "/") {
    relative = path;
  } else if (path.starts_with(base) && (path.size() == base.size() || path[base.size()] == '/')) {
    relative = path.substr(base.size());
  } else {
    return std::nullopt;
  }
  // ".." leads out of what this process may see.
  const auto parts = Split(relative, '/');
  if (std::ranges::find(parts, "..") != parts.end()) return std::nullopt;
  while (relative.ends_with('/')) relative.pop_back();
  return relative;
}

}  // namespace

CgroupChain FindCgroups(std::string_view controller, const std::string& root) {
  const auto groups = ReadSystemFile(root + "/proc/self/cgroup");
  const auto mount_table = ReadSystemFile(root + "/proc/self/mountinfo");
  if (!groups || !mount_table) return {};
  const auto membership = FindMembership(*groups, controller);
  if (!membership) return {};
  const auto mounts = FindMounts(*mount_table, membership->v2, controller);
  if (mounts.empty()) return {};

  // A group that no mount shows: what a container sees as the top is then the nearest that can be read.
  const Mount* mount = &mounts.front();
  std::string relative;
  for (const Mount& candidate : mounts) {
    if (const auto inside = RelativeTo(membership->path, candidate.hierarchy_path)) {
      mount = &candidate;
      relative = *inside;
      break;
    }
  }

  CgroupChain chain{membership->v2, {}};
  for (;;) {
    chain.folders.push_back(root + mount->folder + relative);
    if (relative.empty()) return chain;
    relative.resize(relative.rfind('/'));
  }
}

}  // namespace sluice::platform
