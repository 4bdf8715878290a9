#include "platform/fp_env.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sluice::platform {
namespace {

#if defined(__x86_64__)

// All six exceptions masked, round to nearest, FTZ and DAZ off: the state a process starts in.
constexpr uint64_t kCanonical = 0x1f80;

uint64_t ReadControl() { return _mm_getcsr(); }
void WriteControl(uint64_t value) { _mm_setcsr(static_cast<unsigned>(value)); }

#elif defined(__aarch64__)

// No traps, round to nearest, FZ and FZ16 off: the state a process starts in.
constexpr uint64_t kCanonical = 0;

uint64_t ReadControl() {
  uint64_t value;
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
void WriteControl(uint64_t value) { __asm__ volatile("msr fpcr, %0" : : "r"(value)); }

#else
#error "ScopedFpEnv: the floating-point control register of this processor is not known"
#endif

}  // namespace

ScopedFpEnv::ScopedFpEnv() : saved_(ReadControl()) {
  if (saved_ != kCanonical) WriteControl(kCanonical);
}

// Written back even when equal before: the work may have raised sticky flags, which live in the same
// register on x86.
ScopedFpEnv::~ScopedFpEnv() { WriteControl(saved_); }

}  // namespace sluice::platform
