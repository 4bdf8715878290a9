#include "platform/memory_info.h"

#include <string_view>

#include "base/units.h"
#include "platform/cgroup.h"
#include "platform/system_files.h"

namespace sluice::platform {
namespace {

// A field like "MemTotal:  16384 kB", in bytes.
std::optional<uint64_t> FindKilobytes(std::string_view table, std::string_view name) {
  const auto field = FindField(table, name);
  if (!field || !field->ends_with(" kB")) return std::nullopt;
  const auto kilobytes = ParseNumber(field->substr(0, field->size() - 3));
  uint64_t bytes = 0;
  if (!kilobytes || !CheckedMultiply(*kilobytes, kKiB, &bytes)) return std::nullopt;
  return bytes;
}

uint64_t FindNumber(std::string_view table, std::string_view name) {
  const auto field = FindField(table, name);
  return field ? ParseNumber(*field).value_or(0) : 0;
}

// "max" and absent files are no limit. v1 writes "none" as the largest multiple of the page size.
std::optional<uint64_t> ReadLimit(const std::string& path) {
  const auto limit = ReadNumber(path);
  return limit && *limit < (uint64_t{1} << 62) ? limit : std::nullopt;
}

std::optional<CgroupMemory> ReadGroup(const std::string& folder, bool v2) {
  std::optional<uint64_t> limit;
  if (v2) {
    const auto high = ReadLimit(folder + "/memory.high");
    limit = ReadLimit(folder + "/memory.max");
    if (high && (!limit || *high < *limit)) limit = high;
  } else {
    limit = ReadLimit(folder + "/memory.limit_in_bytes");
  }
  if (!limit) return std::nullopt;

  CgroupMemory group{folder, *limit};
  group.usage_bytes = ReadNumber(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
  // Shared memory and locked pages are on neither of the file lists.
  const auto stat = ReadSystemFile(folder + "/memory.stat").value_or("");
  const std::string prefix = v2 ? "" : "total_";  // v1: with descendants
  group.reclaimable_file_bytes =
      FindNumber(stat, prefix + "active_file") + FindNumber(stat, prefix + "inactive_file");
  return group;
}

}  // namespace

Result<SystemMemory> ReadSystemMemory(const std::string& root) {
  const std::string path = root + "/proc/meminfo";
  const std::string table = ReadSystemFile(path).value_or("");
  const auto total = FindKilobytes(table, "MemTotal");
  const auto available = FindKilobytes(table, "MemAvailable");
  if (!total || !available) {
    return Fail(ErrorCode::kUnsupported, "{} says nothing of {}", path, total ? "MemAvailable" : "MemTotal");
  }
  return SystemMemory{*total, *available};
}

ProcessMemory ReadProcessMemory(const std::string& root) {
  const std::string table = ReadSystemFile(root + "/proc/self/status").value_or("");
  return {.rss_bytes = FindKilobytes(table, "VmRSS").value_or(0),
          .peak_rss_bytes = FindKilobytes(table, "VmHWM").value_or(0),
          .virtual_bytes = FindKilobytes(table, "VmSize").value_or(0),
          .swap_bytes = FindKilobytes(table, "VmSwap").value_or(0)};
}

std::optional<uint64_t> ReadProportionalBytes(const std::string& root) {
  return FindKilobytes(ReadSystemFile(root + "/proc/self/smaps_rollup").value_or(""), "Pss");
}

std::vector<CgroupMemory> ReadCgroupMemory(const std::string& root) {
  const CgroupChain chain = FindCgroups("memory", root);
  std::vector<CgroupMemory> groups;
  for (const std::string& folder : chain.folders) {
    if (auto group = ReadGroup(folder, chain.v2)) groups.push_back(*std::move(group));
  }
  return groups;
}

}  // namespace sluice::platform
