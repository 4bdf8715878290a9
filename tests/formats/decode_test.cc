#include "formats/decode.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "base/hash.h"
#include "formats/unpack.h"

namespace sluice::formats {
namespace {

std::vector<std::byte> RandomBytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() >> 24);
  return bytes;
}

// Values worked out by hand from the layout.
TEST(Decode, Q4_0ByHand) {
  std::byte block[18];
  const uint16_t d = F32ToF16(0.5f);
  std::memcpy(block, &d, 2);
  for (int j = 0; j < 16; ++j) block[2 + j] = static_cast<std::byte>(j | ((15 - j) << 4));
  float out[32];
  DecodeRow(DType::kQ4_0, block, out);
  for (int j = 0; j < 16; ++j) {
    EXPECT_EQ(out[j], 0.5f * static_cast<float>(j - 8));
    EXPECT_EQ(out[j + 16], 0.5f * static_cast<float>(7 - j));
  }
}

TEST(Decode, Q4_KByHand) {
  // d = 1, dmin = 0.5; scale g = 33 + g, min g = 40 + g: both need their two high bits.
  std::byte block[144] = {};
  const uint16_t d = F32ToF16(1.0f), dmin = F32ToF16(0.5f);
  std::memcpy(block, &d, 2);
  std::memcpy(block + 2, &dmin, 2);
  uint8_t scales[12];
  for (int g = 0; g < 4; ++g) {
    const int s = 33 + g, m = 40 + g, s4 = 37 + g, m4 = 44 + g;
    scales[g] = static_cast<uint8_t>(s | ((s4 >> 4) << 6));
    scales[g + 4] = static_cast<uint8_t>(m | ((m4 >> 4) << 6));
    scales[g + 8] = static_cast<uint8_t>((s4 & 15) | ((m4 & 15) << 4));
  }
  std::memcpy(block + 4, scales, 12);
  for (int i = 0; i < 128; ++i) block[16 + i] = static_cast<std::byte>(0x73);  // 3 low, 7 high
  float out[256];
  DecodeRow(DType::kQ4_K, block, out);
  for (int i = 0; i < 256; ++i) {
    const int g = i / 32;
    const float q = g % 2 == 0 ? 3.0f : 7.0f;
    EXPECT_EQ(out[i], static_cast<float>(33 + g) * q - 0.5f * static_cast<float>(40 + g)) << i;
  }
}

TEST(Decode, PlainTypesConvert) {
  const double doubles[] = {1.5, -2.25, 1e300};
  float out[3];
  DecodeRow(DType::kF64, reinterpret_cast<const std::byte*>(doubles), out);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[1], -2.25f);
  EXPECT_TRUE(std::isinf(out[2]));

  const int64_t longs[] = {-7, int64_t{1} << 40, 16777217};
  DecodeRow(DType::kI64, reinterpret_cast<const std::byte*>(longs), out);
  EXPECT_EQ(out[0], -7.0f);
  EXPECT_EQ(out[1], 0x1p40f);
  EXPECT_EQ(out[2], 16777216.0f);

  const int8_t bytes[] = {-128, 0, 127};
  DecodeRow(DType::kI8, reinterpret_cast<const std::byte*>(bytes), out);
  EXPECT_EQ(out[0], -128.0f);
  EXPECT_EQ(out[2], 127.0f);
}

// Any bytes decode to something, at any address, and a row is its blocks one after the other.
TEST(Decode, RandomBytesAtOddAddresses) {
  for (const DTypeTraits& traits : AllDTypes()) {
    const size_t blocks = 5;
    const auto bytes = RandomBytes(blocks * traits.block_bytes + 1, traits.block_bytes);
    std::vector<float> row(blocks * traits.block_length), block(traits.block_length);
    DecodeRow(traits.dtype, bytes.data() + 1, row);
    for (size_t b = 0; b < blocks; ++b) {
      DecodeRow(traits.dtype, bytes.data() + 1 + b * traits.block_bytes, block);
      EXPECT_EQ(HashFloats(block), HashFloats(std::span(row).subspan(b * block.size(), block.size())))
          << traits.name;
    }
  }
}

// P60: an all-zero block decodes to zeros exactly, except where zero bits mean something else.
TEST(Decode, ZeroScaleGivesZero) {
  const std::byte zeros[256] = {};
  float out[256];
  for (const DTypeTraits& traits : AllDTypes()) {
    if (traits.dtype == DType::kMXFP4) continue;  // its scale is never 0, but code 0 is: checked below
    DecodeRow(traits.dtype, zeros, std::span(out, traits.block_length));
    for (uint32_t i = 0; i < traits.block_length; ++i) ASSERT_EQ(out[i], 0.0f) << traits.name;
  }
  DecodeRow(DType::kMXFP4, zeros, std::span(out, 32));
  for (int i = 0; i < 32; ++i) ASSERT_EQ(out[i], 0.0f);
}

// Frozen while the reference vectors agreed bit for bit (reference_blocks_test.cc), so that every format
// stays what it is where those are absent. Eight blocks of random bytes each, scales included.
TEST(Decode, GoldenHashes) {
  const std::pair<DType, uint64_t> golden[] = {
      {DType::kQ4_0, 11388839280668047402u},   {DType::kQ4_1, 16672110174803354996u},
      {DType::kQ5_0, 15831181194097697134u},   {DType::kQ5_1, 9210845184404668562u},
      {DType::kQ8_0, 5750222508933922801u},    {DType::kQ2_K, 15277883335039756423u},
      {DType::kQ3_K, 14098650893768354241u},   {DType::kQ4_K, 7710033269770836658u},
      {DType::kQ5_K, 1251730736048631414u},    {DType::kQ6_K, 13330721112576933627u},
      {DType::kIQ2_XXS, 1460153285927763966u}, {DType::kIQ2_XS, 15153955279018666776u},
      {DType::kIQ3_XXS, 5942407912289345197u}, {DType::kIQ1_S, 2038998191976944212u},
      {DType::kIQ4_NL, 17770318601423952607u}, {DType::kIQ3_S, 8121457961389614810u},
      {DType::kIQ2_S, 11589204111160383581u},  {DType::kIQ4_XS, 9891778674593923525u},
      {DType::kIQ1_M, 13628465881408463026u},  {DType::kTQ1_0, 15200470186763087958u},
      {DType::kTQ2_0, 18177374706102107215u},  {DType::kMXFP4, 1723670182624367169u},
      {DType::kNVFP4, 16174072994272928817u},  {DType::kQ1_0, 3470214649815912357u},
      {DType::kQ2_0, 12339256538519949635u},
  };
  size_t quantised = 0;
  for (const DTypeTraits& traits : AllDTypes()) quantised += IsQuantised(traits.dtype) ? 1 : 0;
  EXPECT_EQ(quantised, std::size(golden));
  for (const auto& [dtype, hash] : golden) {
    const DTypeTraits& traits = Traits(dtype);
    const auto bytes = RandomBytes(8 * traits.block_bytes, 42);
    std::vector<float> values(8 * traits.block_length);
    DecodeRow(dtype, bytes.data(), values);
    EXPECT_EQ(HashFloats(values), hash) << traits.name;
  }
}

// What unpack.h promises about ranges: the kernels' integer widths stand on it.
TEST(Unpack, RangesOverRandomBlocks) {
  constexpr size_t kBlocks = 200;
  for (const DTypeTraits& traits : AllDTypes()) {
    if (!IsQuantised(traits.dtype)) continue;
    const auto bytes = RandomBytes(kBlocks * traits.block_bytes, 7);
    UnpackedBlock block;
    for (size_t b = 0; b < kBlocks; ++b) {
      UnpackerFor(traits.dtype)(bytes.data() + b * traits.block_bytes, block);
      int64_t magnitude = 0;  // of Σ scale · code · activation, at its worst
      for (uint32_t i = 0; i < traits.block_length; ++i) {
        magnitude += std::abs(int64_t{block.scales[i / kGroupLength]} * block.codes[i]) * 127;
        ASSERT_GE(block.mins[i / kGroupLength], 0) << traits.name;
        ASSERT_LE(block.mins[i / kGroupLength], 63) << traits.name;
      }
      // NVFP4 becomes a float group by group, before the scale.
      if (traits.dtype == DType::kNVFP4) continue;
      ASSERT_LE(magnitude, 150'000'000) << traits.name;
    }
  }
}

}  // namespace
}  // namespace sluice::formats
