#include "platform/fp_env.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sluice::platform {
namespace {

// Flushes subnormal inputs and results to zero from now on, or stops it.
void FlushSubnormals(bool on) {
#if defined(__x86_64__)
  constexpr unsigned kFtzAndDaz = 0x8040;
  _mm_setcsr(on ? _mm_getcsr() | kFtzAndDaz : _mm_getcsr() & ~kFtzAndDaz);
#elif defined(__aarch64__)
  constexpr uint64_t kFz = uint64_t{1} << 24;
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(on ? fpcr | kFz : fpcr & ~kFz));
#endif
}

// Volatile operands: computed here and now, in the environment that holds.
bool SubnormalsAreKept() {
  volatile float smallest_normal = 0x1p-126f;
  volatile float half = 0.5f;
  volatile float subnormal = smallest_normal * half;
  return subnormal + subnormal == smallest_normal;
}

bool RoundsToNearest() {
  volatile float one = 1.0f;
  volatile float tiny = 0x1p-30f;
  return one + tiny == 1.0f && one - tiny == 1.0f;
}

TEST(ScopedFpEnvTest, KeepsSubnormalsInside) {
  FlushSubnormals(true);
  const bool before = SubnormalsAreKept();
  bool inside;
  {
    const ScopedFpEnv environment;
    inside = SubnormalsAreKept();
  }
  const bool after = SubnormalsAreKept();
  FlushSubnormals(false);
  EXPECT_FALSE(before);
  EXPECT_TRUE(inside);
  EXPECT_FALSE(after);
}

TEST(ScopedFpEnvTest, RoundsToNearestInside) {
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const bool before = RoundsToNearest();
    bool inside;
    {
      const ScopedFpEnv environment;
      inside = RoundsToNearest();
    }
    const bool after = RoundsToNearest();
    std::fesetround(FE_TONEAREST);
    EXPECT_FALSE(before) << mode;
    EXPECT_TRUE(inside) << mode;
    EXPECT_FALSE(after) << mode;
  }
}

}  // namespace
}  // namespace sluice::platform
