// How much memory the machine has left, what this process uses, and what its control groups allow. Figures
// only: what to do with them is decided in plan/.
//
// Each call reads files of the kernel anew; any thread. `root`: see system_files.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice::platform {

struct SystemMemory {
  uint64_t total_bytes = 0;      // MemTotal
  uint64_t available_bytes = 0;  // MemAvailable: what can be taken without swapping, by the kernel's estimate
};
// Error: kUnsupported when /proc/meminfo can't be read or lacks one of them.
Result<SystemMemory> ReadSystemMemory(const std::string& root = "");

struct ProcessMemory {
  uint64_t rss_bytes = 0;       // resident now
  uint64_t peak_rss_bytes = 0;  // the most that ever was
  uint64_t virtual_bytes = 0;
  uint64_t swap_bytes = 0;
};
// Of this process; 0 for a figure that the kernel doesn't give.
ProcessMemory ReadProcessMemory(const std::string& root = "");
// Resident, with pages that several processes share divided among them. Walks all page tables: milliseconds
// for a large process. nullopt where the kernel doesn't give it.
std::optional<uint64_t> ReadProportionalBytes(const std::string& root = "");

// A control group above this process (or its own) that has a limit.
struct CgroupMemory {
  std::string folder;
  uint64_t limit_bytes = 0;             // v1 limit_in_bytes; v2 the lower of max and high
  uint64_t usage_bytes = 0;             // charged to it and its descendants, page cache included
  uint64_t reclaimable_file_bytes = 0;  // of which page cache that is dropped when memory is short

  // What can still be charged to it.
  uint64_t available_bytes() const {
    const uint64_t kept = usage_bytes - std::min(usage_bytes, reclaimable_file_bytes);
    return limit_bytes - std::min(limit_bytes, kept);
  }
};
// From this process's own group upwards; groups without a limit are left out.
std::vector<CgroupMemory> ReadCgroupMemory(const std::string& root = "");

}  // namespace sluice::platform
