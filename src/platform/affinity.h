// Which cores the calling thread may run on.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"

namespace sluice::platform {

// Lets the calling thread run on `cores` only (ids as in /sys/devices/system/cpu). Error:
// kInvalidArgument for an empty set or an impossible id, kIo when the kernel refuses (no such core, or
// outside this process's cpuset).
Status PinCurrentThread(std::span<const int> cores);

// The cores that the calling thread may run on, ascending; empty when the kernel doesn't say.
std::vector<int> CurrentThreadCores();

// Keeps the calling thread on `cores` until destroyed, by the same thread; then it may run where it could
// before. Does nothing where `cores` is empty or the kernel refuses. Allocates nothing.
class ScopedCores {
 public:
  explicit ScopedCores(std::span<const int> cores);
  ~ScopedCores();
  ScopedCores(const ScopedCores&) = delete;
  ScopedCores& operator=(const ScopedCores&) = delete;

 private:
  bool changed_ = false;
  std::array<std::byte, 128> before_;  // a cpu_set_t
};

}  // namespace sluice::platform
