#include "formats/refine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "formats/bell_shaped.h"
#include "formats/encode.h"
#include "formats/pack.h"

namespace sluice::formats {
namespace {

// An upper triangular factor with a strong pull between neighbours, and the metric U Uᵀ.
struct Metric {
  explicit Metric(size_t n, uint32_t seed) : factor(n * n), square(n * n), size(n) {
    const std::vector<float> noise = BellShaped(n * n, seed);
    for (size_t i = 0; i < n; ++i) {
      factor[i * n + i] = 1;
      for (size_t j = i + 1; j < std::min(n, i + 5); ++j) factor[i * n + j] = 0.25f * noise[i * n + j];
    }
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        for (size_t k = std::max(i, j); k < n; ++k)
          square[i * n + j] += factor[i * n + k] * factor[j * n + k];
      }
    }
  }
  SquareView u() const { return {factor.data(), size}; }
  SquareView s() const { return {square.data(), size}; }
  std::vector<float> Image(std::span<const float> errors) const {
    std::vector<float> image(size);
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) image[j] += errors[i] * square[i * size + j];
    }
    return image;
  }
  double Error(std::span<const float> target, std::span<const float> values) const {
    std::vector<float> errors(size);
    for (size_t i = 0; i < size; ++i) errors[i] = target[i] - values[i];
    const std::vector<float> image = Image(errors);
    double sum = 0;
    for (size_t i = 0; i < size; ++i) sum += double{errors[i]} * double{image[i]};
    return sum;
  }

  std::vector<float> factor, square;
  size_t size;
};

class RefineTest : public testing::TestWithParam<DType> {
 protected:
  UnpackedBlock Encoded(std::span<const float> target) const {
    std::vector<std::byte> bytes(Traits(GetParam()).block_bytes);
    EncodeRow(GetParam(), target, {}, bytes.data());
    UnpackedBlock block;
    UnpackerFor(GetParam())(bytes.data(), block);
    return block;
  }
  static std::vector<float> Values(const UnpackedBlock& block, size_t length) {
    std::vector<float> values(length);
    ValuesOf(block, values);
    return values;
  }
  // What is left of a block when it has been packed.
  std::vector<float> Stored(const UnpackedBlock& block, size_t length) const {
    std::vector<std::byte> bytes(Traits(GetParam()).block_bytes);
    PackerFor(GetParam())(block, bytes.data());
    UnpackedBlock again;
    UnpackerFor(GetParam())(bytes.data(), again);
    return Values(again, length);
  }
};

TEST_P(RefineTest, TheErrorBecomesSmallerAndTheFormatHoldsTheResult) {
  const size_t length = Traits(GetParam()).block_length;
  double all_plain = 0, all_refined = 0;
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    const Metric metric(length, seed);
    const std::vector<float> target = BellShaped(length, 10 + seed);
    UnpackedBlock block = Encoded(target);
    const double plain = metric.Error(target, Values(block, length));
    RoundWithFeedback(GetParam(), target, metric.u(), block);
    std::vector<float> values = Values(block, length);
    const double rounded = metric.Error(target, values);
    EXPECT_LT(rounded, 1.5 * plain) << "seed " << seed;

    std::vector<float> errors(length);
    for (size_t i = 0; i < length; ++i) errors[i] = target[i] - values[i];
    std::vector<float> gradient = metric.Image(errors);
    const float gained = Refine(GetParam(), metric.s(), 3, gradient, block);
    values = Values(block, length);
    const double refined = metric.Error(target, values);
    EXPECT_LE(refined, rounded * (1 + 1e-5)) << "seed " << seed;
    all_plain += plain;
    all_refined += refined;
    EXPECT_NEAR(rounded - refined, gained, 1e-3 * rounded);
    EXPECT_EQ(Stored(block, length), values) << "seed " << seed;
    for (size_t i = 0; i < length; ++i) errors[i] = target[i] - values[i];
    const std::vector<float> anew = metric.Image(errors);
    for (size_t i = 0; i < length; ++i)
      EXPECT_NEAR(gradient[i], anew[i], 1e-3f) << "what it is told keeps up";
  }
  EXPECT_LT(all_refined, all_plain);
}

TEST_P(RefineTest, ZerosStayAsTheyAre) {
  const size_t length = Traits(GetParam()).block_length;
  const Metric metric(length, 1);
  const std::vector<float> target(length);
  UnpackedBlock block = Encoded(target);
  RoundWithFeedback(GetParam(), target, metric.u(), block);
  std::vector<float> gradient(length);
  Refine(GetParam(), metric.s(), 3, gradient, block);
  EXPECT_EQ(Stored(block, length), target);
}

std::vector<DType> Refinable() {
  std::vector<DType> types;
  for (const DTypeTraits& traits : AllDTypes()) {
    if (CanRefine(traits.dtype)) types.push_back(traits.dtype);
  }
  return types;
}

INSTANTIATE_TEST_SUITE_P(Types, RefineTest, testing::ValuesIn(Refinable()),
                         [](const auto& of) { return std::string(Name(of.param)); });

TEST(Refine, AllBlockFormatsButThoseOfOneBit) {
  for (const DTypeTraits& traits : AllDTypes()) {
    const bool one_bit = traits.dtype == DType::kIQ1_S || traits.dtype == DType::kIQ1_M;
    EXPECT_EQ(CanRefine(traits.dtype), IsQuantised(traits.dtype) && !one_bit) << traits.name;
  }
}

}  // namespace
}  // namespace sluice::formats
