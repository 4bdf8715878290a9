#include "platform/affinity.h"

#include <sched.h>

#include <cerrno>
#include <cstring>

namespace sluice::platform {

static_assert(sizeof(cpu_set_t) == 128);

Status PinCurrentThread(std::span<const int> cores) {
  if (cores.empty()) return Fail(ErrorCode::kInvalidArgument, "pinning a thread: the set of cores is empty");
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    if (core < 0 || core >= CPU_SETSIZE) {
      return Fail(ErrorCode::kInvalidArgument, "pinning a thread: core {} is not in 0 … {}", core,
                  CPU_SETSIZE - 1);
    }
    CPU_SET(static_cast<unsigned>(core), &set);
  }
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    return Fail(ErrorCode::kIo, "pinning a thread to {} cores, the first of them {}: {}", cores.size(),
                cores[0], std::strerror(errno));
  }
  return {};
}

std::vector<int> CurrentThreadCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<unsigned>(core), &set)) cores.push_back(core);
  }
  return cores;
}

ScopedCores::ScopedCores(std::span<const int> cores) {
  cpu_set_t before;
  if (cores.empty() || sched_getaffinity(0, sizeof(before), &before) != 0) return;
  std::memcpy(before_.data(), &before, sizeof(before));
  changed_ = static_cast<bool>(PinCurrentThread(cores));
}

ScopedCores::~ScopedCores() {
  if (!changed_) return;
  cpu_set_t before;
  std::memcpy(&before, before_.data(), sizeof(before));
  // Refused only if all these cores went away meanwhile; then the kernel has chosen others itself.
  static_cast<void>(sched_setaffinity(0, sizeof(before), &before));
}

}  // namespace sluice::platform
