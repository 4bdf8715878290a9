#include "platform/cpu_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

#include "platform/cgroup.h"
#include "platform/system_files.h"

namespace sluice::platform {
namespace {

// Cores of the weakest kind count as little when the next kind is this much stronger. Capacities in the
// field, weakest and next: 160:498 (Tensor G1), 325:777 (Snapdragon 8 Gen 1), 430:1024 (2+6 designs) are
// little; 1024:800 (Snapdragon 8 Elite) is not. Frequencies understate the difference (1.8:2.4 GHz stands for
// 1:3) and differ by a few percent between equal cores of desktops.
constexpr double kCapacityGap = 1.5;
constexpr double kFrequencyGap = 1.25;

std::string CoreFile(const std::string& root, int id, std::string_view name) {
  return root + "/sys/devices/system/cpu/cpu" + std::to_string(id) + "/" + std::string(name);
}

std::optional<std::vector<int>> ReadCpuList(const std::string& path) {
  const auto text = ReadSystemFile(path);
  return text ? ParseCpuList(*text) : std::nullopt;
}

// The cores that one control group has; nothing where it doesn't say, or has no set of its own.
std::optional<std::vector<int>> GroupCores(const std::string& folder) {
  // v2; v1; v1 mounted without prefixes, as Android does, each with what is left of it when cores are offline
  // first.
  for (const std::string_view file :
       {"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus", "effective_cpus", "cpus"}) {
    auto cores = ReadCpuList(folder + "/" + std::string(file));
    if (cores && !cores->empty()) return cores;
  }
  return std::nullopt;
}

// Takes away what `allowed` doesn't have, unless nothing would be left: then it is no use to us.
void Restrict(const std::vector<int>& allowed, std::vector<int>* cores) {
  std::vector<int> both;
  std::ranges::set_intersection(*cores, allowed, std::back_inserter(both));
  if (!both.empty()) *cores = std::move(both);
}

// The kernel takes CPU sets into account in the affinity mask, but containers that make up their own /proc
// may not.
std::vector<int> UsableCores(const std::string& root, const std::optional<std::vector<int>>& online) {
  std::optional<std::vector<int>> allowed;
  if (const auto text = ReadSystemFile(root + "/proc/self/status")) {
    if (const auto list = FindField(*text, "Cpus_allowed_list")) allowed = ParseCpuList(*list);
  }
  std::vector<int> usable = online ? *online : allowed.value_or(std::vector<int>{});
  if (allowed) Restrict(*allowed, &usable);
  for (const std::string& folder : FindCgroups("cpuset", root).folders) {
    if (const auto cores = GroupCores(folder)) Restrict(*cores, &usable);
  }
  if (usable.empty()) usable = {0};
  return usable;
}

// Sets every core's capacity from its file `name`; false, with nothing changed, when one has none.
bool ReadCapacities(const std::string& root, std::string_view name, std::vector<Core>* cores) {
  std::vector<uint64_t> capacities;
  for (const Core& core : *cores) {
    const auto capacity = ReadNumber(CoreFile(root, core.id, name));
    if (!capacity || *capacity == 0) return false;
    capacities.push_back(*capacity);
  }
  for (size_t i = 0; i < cores->size(); ++i) (*cores)[i].capacity = capacities[i];
  return true;
}

bool IsFirstOfSiblings(const std::string& root, int id, const std::vector<int>& usable) {
  const auto siblings = ReadCpuList(CoreFile(root, id, "topology/thread_siblings_list"));
  if (!siblings) return true;
  return std::ranges::none_of(*siblings, [&](int sibling) {
    return sibling < id && std::ranges::find(usable, sibling) != usable.end();
  });
}

// Cores' worth of time in one group; infinity when unlimited.
double GroupQuota(const std::string& folder, bool v2) {
  std::optional<uint64_t> quota, period;
  if (v2) {
    const auto text = ReadSystemFile(folder + "/cpu.max");  // "max 100000" or "150000 100000"
    if (text) {
      const auto fields = Split(*text, ' ');
      quota = ParseNumber(fields.front());
      period = ParseNumber(fields.back());
    }
  } else {
    quota = ReadNumber(folder + "/cpu.cfs_quota_us");  // -1, no number to us, when unlimited
    period = ReadNumber(folder + "/cpu.cfs_period_us");
  }
  if (!quota || !period || *period == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

CpuTopology ReadCpuTopology(const std::string& root) {
  CpuTopology topology;
  const auto online = ReadCpuList(root + "/sys/devices/system/cpu/online");
  const std::vector<int> usable = UsableCores(root, online);
  topology.online = static_cast<int>(std::max(usable.size(), online ? online->size() : 0));
  for (const int id : usable) topology.cores.push_back({id, 1, IsFirstOfSiblings(root, id, usable)});
  if (!ReadCapacities(root, "cpu_capacity", &topology.cores)) {
    topology.capacity_is_frequency = ReadCapacities(root, "cpufreq/cpuinfo_max_freq", &topology.cores);
  }
  const CgroupChain groups = FindCgroups("cpu", root);
  for (const std::string& folder : groups.folders) {
    topology.quota = std::min(topology.quota, GroupQuota(folder, groups.v2));
  }
  return topology;
}

std::vector<int> BigCores(const CpuTopology& topology) {
  std::vector<uint64_t> kinds;
  for (const Core& core : topology.cores) kinds.push_back(core.capacity);
  std::ranges::sort(kinds, std::greater());
  const auto ratio = [&](size_t i) {
    return static_cast<double>(kinds[i]) / static_cast<double>(kinds[i + 1]);
  };

  // The widest gap between neighbours in strength is where the little cores begin, if it is wide enough.
  uint64_t weakest_big = kinds.back();
  double widest = topology.capacity_is_frequency ? kFrequencyGap : kCapacityGap;
  for (size_t i = 0; i + 1 < kinds.size(); ++i) {
    if (ratio(i) < widest) continue;
    widest = ratio(i);
    weakest_big = kinds[i];
  }

  std::vector<int> ids;
  for (const Core& core : topology.cores) {
    if (core.capacity >= weakest_big && core.first_of_siblings) ids.push_back(core.id);
  }
  return ids;
}

ThreadChoice ChooseThreads(const CpuTopology& topology, int asked) {
  const std::vector<int> big = BigCores(topology);
  const bool some_little = big.size() < topology.cores.size();
  std::string cores = fmt::format("{} {} that may be used", topology.cores.size(),
                                  topology.cores.size() == 1 ? "core" : "cores");
  if (topology.cores.size() < static_cast<size_t>(topology.online))
    cores += fmt::format(", {} online", topology.online);

  ThreadChoice choice;
  if (asked != 0) {
    choice.threads = asked;
    choice.origin = fmt::format("{}: as asked, with {}", asked, cores);
  } else if (topology.quota < static_cast<double>(big.size())) {
    choice.threads = std::max(1, static_cast<int>(topology.quota));
    choice.origin = fmt::format("{}: control groups allow the time of {:.3g} cores, with {}", choice.threads,
                                topology.quota, cores);
  } else {
    choice.threads = static_cast<int>(big.size());
    choice.origin =
        fmt::format("{}: one for each {}core, with {}", choice.threads, some_little ? "big " : "", cores);
  }
  if (some_little && choice.threads <= static_cast<int>(big.size())) choice.cores = big;
  return choice;
}

}  // namespace sluice::platform
