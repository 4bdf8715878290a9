// Rows of the KV cache: what is stored comes back as near as the type's steps allow.
#include "kernels/kv_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/blocks.h"
#include "kernels/support.h"

namespace sluice::kernels {
namespace {

const Kernels& Scalar() { return *FindKernels("scalar"); }

std::vector<KvType> Types() {
  std::vector<KvType> types;
  for (size_t i = 0; i < kKvTypeCount; ++i) types.push_back(static_cast<KvType>(i));
  return types;
}

std::vector<float> ThereAndBack(KvType type, std::span<const float> x) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<std::byte> row(KvRowBytes(type, n));
  StoreKvRow(Scalar(), type, x.data(), n, row.data());
  std::vector<float> y(x.size());
  LoadKvRow(type, row.data(), n, y.data());
  return y;
}

// The largest error allowed for elements of up to `largest` beside each other.
float Tolerance(KvType type, float largest) {
  switch (type) {
    case KvType::kF32:
      return 0;
    case KvType::kF16:
      return largest * 0x1p-11f;
    case KvType::kQ8_0:
      return largest / 127 * 0.5f + largest * 0x1p-11f;
    case KvType::kQ5_0:
      return largest / 16 * 2.5f;  // both ends may be cut
    case KvType::kQ4_0:
      return largest / 8 * 2.0f;
  }
  return 0;
}

TEST(KvRows, NamesAndBack) {
  for (const KvType type : Types()) EXPECT_EQ(KvTypeByName(Name(type)), type) << Name(type);
  EXPECT_FALSE(KvTypeByName("q9_9"));
  EXPECT_FALSE(KvTypeByName(""));
}

TEST(KvRows, BytesOfARow) {
  EXPECT_EQ(KvRowBytes(KvType::kF32, 80), 320u);
  EXPECT_EQ(KvRowBytes(KvType::kF16, 80), 160u);
  EXPECT_EQ(KvRowBytes(KvType::kQ8_0, 128), 136u);
  EXPECT_EQ(KvRowBytes(KvType::kQ5_0, 128), 88u);
  EXPECT_EQ(KvRowBytes(KvType::kQ4_0, 128), 72u);
  EXPECT_EQ(KvRowBytes(KvType::kQ4_0, 80), 54u) << "80 elements take three blocks";
}

TEST(KvRows, ComeBackWithinTheStepOfTheirType) {
  for (const KvType type : Types()) {
    for (const int n : {1, 31, 32, 40, 64, 80, 96, 100, 112, 128, 192, 256, kMaxHeadDim}) {
      const auto x = MakeInput(n, InputKind::kBell, static_cast<uint64_t>(n));
      const std::vector<float> y = ThereAndBack(type, x);
      for (int first = 0; first < n; first += 32) {
        float largest = 0;
        for (int i = first; i < std::min(first + 32, n); ++i)
          largest = std::max(largest, std::abs(x[static_cast<size_t>(i)]));
        for (int i = first; i < std::min(first + 32, n); ++i) {
          const auto at = static_cast<size_t>(i);
          ASSERT_LE(std::abs(x[at] - y[at]), Tolerance(type, largest))
              << Name(type) << ", element " << i << " of " << n;
        }
      }
    }
  }
}

// Few bits: never further from the row than the plain encoding, in which the extreme element takes the lowest
// code.
TEST(KvRows, LowBitScalesAreChosenWell) {
  double found = 0, plain = 0;
  for (const auto& [type, half] : {std::pair{KvType::kQ5_0, 16}, {KvType::kQ4_0, 8}}) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const auto x = MakeInput(32, InputKind::kBell, seed);
      const std::vector<float> y = ThereAndBack(type, x);
      const float extreme =
          *std::max_element(x.begin(), x.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
      const double step = -double{extreme} / half;
      double error = 0, plain_error = 0;
      for (size_t i = 0; i < 32; ++i) {
        error += std::pow(x[i] - y[i], 2);
        plain_error += std::pow(x[i] - step * std::min(std::floor(x[i] / step + 0.5), half - 1.0), 2);
      }
      EXPECT_LT(error, 1.01 * plain_error) << Name(type) << ", row " << seed;
      found += error;
      plain += plain_error;
    }
  }
  EXPECT_LT(found, 0.95 * plain);
}

// The blocks are those of the weight formats: exact values, worked out by hand.
TEST(KvRows, KnownBlocks) {
  std::vector<float> x(32, 0.0f);
  x[0] = -4.0f;  // the largest: −8 steps of 0.5
  x[1] = 3.5f;
  x[17] = 1.0f;
  formats::BlockQ4_0 q4;
  StoreKvRow(Scalar(), KvType::kQ4_0, x.data(), 32, reinterpret_cast<std::byte*>(&q4));
  EXPECT_EQ(q4.d.bits(), 0x3800u);
  EXPECT_EQ(q4.qs[0], 0x80);  // −8 and 0, the zero being 8
  EXPECT_EQ(q4.qs[1], 0xaf);
  EXPECT_EQ(q4.qs[2], 0x88);

  x[1] = 3.75f;
  x[17] = 0.25f;
  formats::BlockQ5_0 q5;
  StoreKvRow(Scalar(), KvType::kQ5_0, x.data(), 32, reinterpret_cast<std::byte*>(&q5));
  EXPECT_EQ(q5.d.bits(), 0x3400u);
  EXPECT_EQ(q5.qs[0], 0x00);  // 0 and 16
  EXPECT_EQ(q5.qs[1], 0x1f);  // 31 and 17
  EXPECT_EQ(formats::Load32(q5.qh), 0xfffffffeu);

  x[3] = 127.0f * 0.03125f;  // now the largest, 127 steps of 2^−5
  x[0] = -0.046875f;         // −1.5 steps: to the even one
  formats::BlockQ8_0 q8;
  StoreKvRow(Scalar(), KvType::kQ8_0, x.data(), 32, reinterpret_cast<std::byte*>(&q8));
  EXPECT_EQ(q8.d.bits(), 0x2800u);
  EXPECT_EQ(q8.qs[3], 127);
  EXPECT_EQ(q8.qs[0], -2);
  EXPECT_EQ(q8.qs[17], 8);
}

TEST(KvRows, OddNumbers) {
  for (const KvType type : {KvType::kQ8_0, KvType::kQ5_0, KvType::kQ4_0}) {
    EXPECT_EQ(ThereAndBack(type, std::vector<float>(40, 0.0f)), std::vector<float>(40, 0.0f)) << Name(type);
    EXPECT_EQ(ThereAndBack(type, std::vector<float>(32, 1e-40f)), std::vector<float>(32, 0.0f)) << Name(type);
    for (const float odd :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(64, 1.0f);
      x[5] = odd;
      const std::vector<float> y = ThereAndBack(type, x);
      for (size_t i = 0; i < 64; ++i) EXPECT_EQ(std::isnan(y[i]), i < 32) << Name(type) << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
