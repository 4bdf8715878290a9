// How much memory the machine has left, and what this process uses. Figures only: what to do with them is
// decided in plan/. What control groups allow: cgroup_memory.h.
//
// Each call reads files of the kernel anew; any thread. `root`: see system_files.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace sluice::platform {

struct SystemMemory {
  uint64_t total_bytes = 0;      // MemTotal
  uint64_t available_bytes = 0;  // MemAvailable: what can be taken without swapping, by the kernel's estimate
};
// Error: kUnsupported when /proc/meminfo can't be read or lacks one of them.
Result<SystemMemory> ReadSystemMemory(const std::string& root = "");

struct ProcessMemory {
  std::optional<uint64_t> rss_bytes;       // resident now
  std::optional<uint64_t> peak_rss_bytes;  // the most that ever was
  std::optional<uint64_t> virtual_bytes;
  std::optional<uint64_t> swap_bytes;
};
// Of this process; nothing for a figure that the kernel doesn't give.
ProcessMemory ReadProcessMemory(const std::string& root = "");
// Resident, with pages that several processes share divided among them. Walks all page tables: milliseconds
// for a large process. nullopt where the kernel doesn't give it.
std::optional<uint64_t> ReadProportionalBytes(const std::string& root = "");

}  // namespace sluice::platform
