#include "quantize/random_blocks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.h"
#include "formats/decode.h"

namespace sluice::quantize {
namespace {

// What the weights look like once decoded, over all formats and two very different sizes.
TEST(RandomBlocks, MeanAndDeviationAreAsAsked) {
  for (const formats::DTypeTraits& traits : formats::AllDTypes()) {
    const std::string_view name = traits.name;
    if (name.front() == 'I' && name[1] != 'Q') continue;  // integers
    if (name == "F64") continue;
    for (const float deviation : {0.01f, 0.2f}) {
      constexpr size_t kElements = 1 << 16;
      RandomBlocks blocks(traits.dtype, deviation);
      std::vector<std::byte> bytes(formats::RowBytes(traits.dtype, kElements));
      blocks.Fill(bytes);
      std::vector<float> values(kElements);
      formats::DecodeRow(traits.dtype, bytes.data(), values);
      double sum = 0, squares = 0;
      for (const float value : values) {
        ASSERT_TRUE(std::isfinite(value)) << name;
        sum += value;
        squares += double{value} * value;
      }
      EXPECT_NEAR(sum / kElements / deviation, 0, 0.06) << name;
      EXPECT_NEAR(std::sqrt(squares / kElements) / deviation, 1, 0.05) << name;
    }
  }
}

TEST(RandomBlocks, TheSeedDecidesAndChunksDoNot) {
  RandomBlocks blocks(formats::DType::kQ4_K, 0.02f);
  std::vector<std::byte> once(64 * 144), other(64 * 144);
  blocks.Reseed(7);
  blocks.Fill(once);
  EXPECT_EQ(HashBytes(once), 9341321323861538529u);  // frozen: the same on every machine
  blocks.Reseed(8);
  blocks.Fill(other);
  EXPECT_NE(once, other);
  blocks.Reseed(7);
  blocks.Fill(other);
  EXPECT_EQ(once, other);
}

TEST(RandomBlocks, TernaryCodesAreTernary) {
  RandomBlocks blocks(formats::DType::kTQ2_0, 0.02f);
  std::vector<std::byte> bytes(66 * 100);
  blocks.Fill(bytes);
  std::vector<float> values(256 * 100);
  formats::DecodeRow(formats::DType::kTQ2_0, bytes.data(), values);
  for (size_t block = 0; block < 100; ++block) {
    float largest = 0;
    for (size_t i = 0; i < 256; ++i) largest = std::max(largest, std::abs(values[256 * block + i]));
    for (size_t i = 0; i < 256; ++i) {
      const float value = std::abs(values[256 * block + i]);
      ASSERT_TRUE(value == 0 || value == largest);
    }
  }
}

}  // namespace
}  // namespace sluice::quantize
