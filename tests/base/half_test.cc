#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <vector>

#include "base/hash.h"

namespace sluice {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The value of a half from its fields, by the definition of the format.
double HalfByDefinition(uint16_t half) {
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  return exponent == 0 ? sign * std::ldexp(mantissa, -24) : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(HalfTest, EveryF16HasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = F16ToF32(half);
    const bool special = (half & 0x7c00) == 0x7c00;
    if (special && (half & 0x3ff) != 0) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_EQ(F32ToF16(value), half | 0x200) << bits;  // made quiet, payload kept
      continue;
    }
    if (special) {
      EXPECT_EQ(value, (half & 0x8000) != 0 ? -kInf : kInf);
    } else {
      EXPECT_EQ(value, HalfByDefinition(half)) << bits;
      EXPECT_EQ(std::signbit(value), (half & 0x8000) != 0) << bits;
    }
    EXPECT_EQ(F32ToF16(value), half) << bits;
  }
}

// Nearest by search over the neighbours, with exact doubles: every interval between two halves at its quarter
// points, its middle, and one float to either side of the middle.
TEST(HalfTest, F32ToF16RoundsToNearestEven) {
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    const double low = HalfByDefinition(half);
    const double high = HalfByDefinition(static_cast<uint16_t>(half + 1));
    const auto middle = static_cast<float>((low + high) / 2);  // exact in float
    const auto next = static_cast<uint16_t>(half + 1);
    EXPECT_EQ(F32ToF16(middle), (half & 1) != 0 ? next : half);
    EXPECT_EQ(F32ToF16(std::nextafter(middle, 0.0f)), half);
    EXPECT_EQ(F32ToF16(std::nextafter(middle, kInf)), next);
    EXPECT_EQ(F32ToF16(-std::nextafter(middle, kInf)), next | 0x8000);
    EXPECT_EQ(F32ToF16(static_cast<float>(low + (high - low) / 4)), half);
    EXPECT_EQ(F32ToF16(static_cast<float>(low + (high - low) * 3 / 4)), next);
  }
  EXPECT_EQ(F32ToF16(65519.996f), 0x7bff);
  EXPECT_EQ(F32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(F32ToF16(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(F32ToF16(std::numeric_limits<float>::denorm_min()), 0);
}

#if defined(__aarch64__)
using CompilerHalf = __fp16;  // GCC 12 has no _Float16 in C++ there
#define SLUICE_TEST_COMPILER_HALF
#elif defined(__FLT16_MAX__)
using CompilerHalf = _Float16;
#define SLUICE_TEST_COMPILER_HALF
#endif
#if defined(SLUICE_TEST_COMPILER_HALF)
TEST(HalfTest, AgreesWithTheCompilersConversion) {
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 1237) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(F32ToF16(value), std::bit_cast<uint16_t>(static_cast<CompilerHalf>(value))) << value;
  }
}
#endif

TEST(HalfTest, AgreesWithTheReferenceTable) {
  std::ifstream file(SLUICE_REFERENCE_DIR "/oracle/blocks/f16_all.f32", std::ios::binary);
  if (!file) GTEST_SKIP() << "no reference vectors at " SLUICE_REFERENCE_DIR;
  std::vector<float> table(65536);
  file.read(reinterpret_cast<char*>(table.data()), 65536 * sizeof(float));
  ASSERT_EQ(file.gcount(), 65536 * 4);
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = F16ToF32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(table[bits])) << bits;
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(table[bits])) << bits;
    }
  }
}

TEST(HalfTest, EveryBf16ComesBackAndMiddlesGoToEven) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto bf16 = static_cast<uint16_t>(bits);
    const float value = Bf16ToF32(bf16);
    if (std::isnan(value)) {
      EXPECT_EQ(F32ToBf16(value), bf16 | 0x40) << bits;
      continue;
    }
    EXPECT_EQ(F32ToBf16(value), bf16) << bits;
    if (std::isinf(value)) continue;
    const auto between = [&](uint32_t low) { return std::bit_cast<float>((bits << 16) | low); };
    const auto next = static_cast<uint16_t>(bf16 + 1);  // away from zero; past the largest comes infinity
    EXPECT_EQ(F32ToBf16(between(0x7fff)), bf16) << bits;
    EXPECT_EQ(F32ToBf16(between(0x8000)), (bf16 & 1) != 0 ? next : bf16) << bits;
    EXPECT_EQ(F32ToBf16(between(0x8001)), next) << bits;
  }
}

TEST(HalfTest, GoldenBits) {
  uint64_t hash = kHashSeed;
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 65521) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const uint16_t halves[2] = {F32ToF16(value), F32ToBf16(value)};  // payloads of NaNs included
    hash = HashBytes(std::as_bytes(std::span(halves)), hash);
  }
  EXPECT_EQ(hash, 0xc667b5e0f8f98733ull);
}

}  // namespace
}  // namespace sluice
