// What the memory control groups above this process allow, and how much of it is taken. Figures only: what to
// do with them is decided in plan/.
//
// `root`: see system_files.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "platform/system_files.h"

namespace sluice::platform {

// A control group above this process (or its own).
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

// From this process's own group upwards; groups without a limit are left out. Reads files of the kernel anew;
// any thread.
std::vector<CgroupMemory> ReadCgroupMemory(const std::string& root = "");

// The same figures of one group, to be read again and again: its files stay open, and Read allocates nothing.
// One thread at a time.
class CgroupMemoryReader {
 public:
  CgroupMemoryReader(std::string folder, bool v2);

  // False while the group has no limit; the figures mean nothing then. `buffer` holds one file at a time.
  bool Read(std::span<char> buffer);
  const CgroupMemory& figures() const { return figures_; }

 private:
  bool v2_;
  WatchedFile limit_, high_, usage_, stat_;
  CgroupMemory figures_;
};

// For the files of the kernel that are read here.
inline constexpr size_t kSystemFileBuffer = 16 * 1024;

}  // namespace sluice::platform
