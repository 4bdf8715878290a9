#include "platform/memory_info.h"

#include <string_view>

#include "platform/system_files.h"

namespace sluice::platform {

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
  return {.rss_bytes = FindKilobytes(table, "VmRSS"),
          .peak_rss_bytes = FindKilobytes(table, "VmHWM"),
          .virtual_bytes = FindKilobytes(table, "VmSize"),
          .swap_bytes = FindKilobytes(table, "VmSwap")};
}

std::optional<uint64_t> ReadProportionalBytes(const std::string& root) {
  return FindKilobytes(ReadSystemFile(root + "/proc/self/smaps_rollup").value_or(""), "Pss");
}

}  // namespace sluice::platform
