// Which cores the calling thread may run on.
#pragma once

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

}  // namespace sluice::platform
