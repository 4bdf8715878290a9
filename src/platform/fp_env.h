// ScopedFpEnv: the floating-point environment that the canonical arithmetic needs, for as long as it
// lives: round to nearest even, subnormals kept (no flush to zero), exceptions masked. Restores what the
// thread had before.
//
// Affects the calling thread only, and must be destroyed on it. The compiler may move arithmetic across the
// constructor: put the work into a function that is not inlined (the thread pool calls through a pointer).
#pragma once

#include <cstdint>

namespace sluice::platform {

class ScopedFpEnv {
 public:
  ScopedFpEnv();
  ~ScopedFpEnv();
  ScopedFpEnv(const ScopedFpEnv&) = delete;
  ScopedFpEnv& operator=(const ScopedFpEnv&) = delete;

 private:
  uint64_t saved_;  // MXCSR or FPCR
};

}  // namespace sluice::platform
