// MemoryGauge: how much memory can still be taken, read again and again while a model runs: what the system
// has available, and what each control group above this process still allows; the least of them.
//
// Keeps the kernel's files open and reads them into a buffer of its own: reading allocates nothing and takes
// some tens of microseconds. A process that is moved to another control group goes on with the figures of the
// one that it was in. One thread at a time. `root`: see system_files.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/cgroup_memory.h"
#include "platform/system_files.h"

namespace sluice::platform {

class MemoryGauge {
 public:
  explicit MemoryGauge(const std::string& root = "");

  // UINT64_MAX where the system says nothing.
  uint64_t AvailableBytes();

 private:
  WatchedFile meminfo_;
  std::vector<CgroupMemoryReader> groups_;
  std::vector<char> buffer_;
};

}  // namespace sluice::platform
