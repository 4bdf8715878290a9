#include "formats/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/hash.h"
#include "formats/bell_shaped.h"
#include "formats/decode.h"
#include "formats/pack.h"

namespace sluice::formats {
namespace {

std::vector<DType> QuantisedTypes() {
  std::vector<DType> types;
  for (const DTypeTraits& traits : AllDTypes()) {
    if (IsQuantised(traits.dtype)) types.push_back(traits.dtype);
  }
  return types;
}

struct Coded {
  std::vector<std::byte> blocks;
  std::vector<float> values;
};

Coded Encode(DType dtype, std::span<const float> values, std::span<const float> importance = {}) {
  Coded coded{std::vector<std::byte>(RowBytes(dtype, values.size())), std::vector<float>(values.size())};
  EncodeRow(dtype, values, importance, coded.blocks.data());
  DecodeRow(dtype, coded.blocks.data(), coded.values);
  return coded;
}

double Error(std::span<const float> values, std::span<const float> decoded,
             std::span<const float> weights = {}) {
  double error = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = double{values[i]} - decoded[i];
    error += (weights.empty() ? 1.0 : double{weights[i]}) * difference * difference;
  }
  return error;
}

double Squares(std::span<const float> values) { return Error(values, std::vector<float>(values.size())); }

double RelativeError(DType dtype, std::span<const float> values) {
  return std::sqrt(Error(values, Encode(dtype, values).values) / Squares(values));
}

// What a packer packs, unpacks to the same.
TEST(Pack, InvertsUnpack) {
  std::mt19937 random(3);
  for (const DType dtype : QuantisedTypes()) {
    std::vector<std::byte> bytes(Traits(dtype).block_bytes), again(bytes.size());
    for (int round = 0; round < 200; ++round) {
      for (std::byte& b : bytes) b = static_cast<std::byte>(random() >> 24);
      UnpackedBlock first{}, second{};
      UnpackerFor(dtype)(bytes.data(), first);
      if (std::isnan(first.d) || std::isnan(first.dmin)) continue;
      PackerFor(dtype)(first, again.data());
      UnpackerFor(dtype)(again.data(), second);
      ASSERT_EQ(std::memcmp(&first, &second, sizeof(first)), 0) << Name(dtype) << " round " << round;
    }
  }
}

// The relative error of bell-shaped weights, a little above what each type reaches.
TEST(Encode, ErrorOfBellShapedWeights) {
  const std::pair<DType, double> bounds[] = {
      {DType::kF32, 0},        {DType::kF16, 2.5e-4},    {DType::kBF16, 2e-3},   {DType::kQ8_0, 0.0055},
      {DType::kQ6_K, 0.018},   {DType::kQ5_K, 0.037},    {DType::kQ5_1, 0.036},  {DType::kQ5_0, 0.043},
      {DType::kQ4_K, 0.073},   {DType::kQ4_1, 0.073},    {DType::kQ4_0, 0.085},  {DType::kIQ4_NL, 0.078},
      {DType::kIQ4_XS, 0.078}, {DType::kNVFP4, 0.088},   {DType::kMXFP4, 0.118}, {DType::kIQ3_S, 0.133},
      {DType::kQ3_K, 0.150},   {DType::kIQ3_XXS, 0.182}, {DType::kIQ2_S, 0.243}, {DType::kQ2_K, 0.268},
      {DType::kIQ2_XS, 0.293}, {DType::kIQ2_XXS, 0.335}, {DType::kQ2_0, 0.36},   {DType::kIQ1_M, 0.415},
      {DType::kIQ1_S, 0.455},  {DType::kTQ1_0, 0.45},    {DType::kTQ2_0, 0.45},  {DType::kQ1_0, 0.615},
  };
  EXPECT_EQ(std::size(bounds), QuantisedTypes().size() + 3);
  const std::vector<float> values = BellShaped(2048, 1);
  for (const auto& [dtype, bound] : bounds) {
    EXPECT_TRUE(CanEncode(dtype));
    EXPECT_LE(RelativeError(dtype, values), bound) << Name(dtype);
  }
  EXPECT_FALSE(CanEncode(DType::kI32));
  EXPECT_FALSE(CanEncode(DType::kF64));
}

// What was decoded from a block is near to what can be encoded.
TEST(Encode, DecodedBlocksLoseLittleMore) {
  const std::vector<float> values = BellShaped(1024, 2);
  for (const DType dtype : QuantisedTypes()) {
    const Coded once = Encode(dtype, values);
    const Coded twice = Encode(dtype, once.values);
    EXPECT_LE(Error(once.values, twice.values), 0.3 * Error(values, once.values)) << Name(dtype);
  }
}

TEST(Encode, ZerosStayZeros) {
  const std::vector<float> zeros(512);
  for (const DType dtype : QuantisedTypes()) {
    for (const float value : Encode(dtype, zeros).values) ASSERT_EQ(value, 0.0f) << Name(dtype);
  }
}

// No block is worse than one of zeros, whatever its values.
TEST(Encode, NeverWorseThanZeros) {
  const std::vector<float> bell = BellShaped(512, 4);
  const auto scaled = [&bell](float factor) {
    std::vector<float> values = bell;
    for (float& value : values) value *= factor;
    return values;
  };
  std::vector<std::vector<float>> rows = {scaled(1e-41f), scaled(1e-30f), scaled(1e-9f), scaled(3e-8f),
                                          scaled(1e-7f),  scaled(1e-5f),  scaled(100)};
  std::vector<float> outlier = bell, step(512), alternating(512), spike(512);
  outlier[300] = 40;
  spike[77] = -3;
  for (size_t i = 0; i < 512; ++i) {
    step[i] = i < 130 ? 0.0f : 0.7f;
    alternating[i] = i % 2 == 0 ? 0.3f : -0.3f;
  }
  rows.insert(rows.end(), {outlier, step, alternating, spike, std::vector<float>(512, 0.7f),
                           std::vector<float>(512, -1e-3f), std::vector<float>(512, 1e-40f)});
  for (const DType dtype : QuantisedTypes()) {
    for (size_t row = 0; row < rows.size(); ++row) {
      const Coded coded = Encode(dtype, rows[row]);
      EXPECT_LE(Error(rows[row], coded.values), 1.000001 * Squares(rows[row]))
          << Name(dtype) << " row " << row;
      for (const float value : coded.values)
        ASSERT_TRUE(std::isfinite(value)) << Name(dtype) << " row " << row;
    }
  }
}

TEST(Encode, ConstantBlocks) {
  for (const float value : {0.7f, -0.7f, 1e-3f}) {
    const std::vector<float> values(512, value);
    for (const DType dtype : QuantisedTypes()) {
      if (dtype == DType::kNVFP4 && value == 1e-3f) continue;  // half of its smallest code
      // MXFP4 has powers of two for scales, IQ1 entries that all differ a little from any multiple.
      EXPECT_LE(RelativeError(dtype, values), dtype == DType::kMXFP4 ? 0.17 : 0.03)
          << Name(dtype) << " " << value;
    }
  }
}

// One element that is 40 times the others keeps its size, where the type has a code for it.
TEST(Encode, AnOutlierSurvives) {
  std::vector<float> values = BellShaped(256, 5);
  values[100] = -40;
  for (const DType dtype : QuantisedTypes()) {
    if (Traits(dtype).block_bytes * 8 < 3 * Traits(dtype).block_length) continue;  // below 3 bits
    EXPECT_NEAR(Encode(dtype, values).values[100], -40, dtype == DType::kMXFP4 ? 8 : 5) << Name(dtype);
  }
}

TEST(Encode, LargeValues) {
  for (const DType dtype : QuantisedTypes()) {
    std::vector<float> values = BellShaped(512, 6);
    for (float& value : values) value = std::clamp(value * 0.3f, -1.0f, 1.0f) * LargestValue(dtype);
    EXPECT_EQ(FindUnfitValue(dtype, values), 512u) << Name(dtype);
    EXPECT_LE(RelativeError(dtype, values), 0.65) << Name(dtype);
    // Beyond that they are wrong, but numbers.
    const std::vector<float> huge(512, -3e38f);
    for (const float value : Encode(dtype, huge).values) ASSERT_TRUE(std::isfinite(value)) << Name(dtype);
    values[17] = std::nextafter(LargestValue(dtype), INFINITY);
    EXPECT_EQ(FindUnfitValue(dtype, values), 17u) << Name(dtype);
    values[5] = NAN;
    EXPECT_EQ(FindUnfitValue(dtype, values), 5u) << Name(dtype);
    values[2] = -INFINITY;
    EXPECT_EQ(FindUnfitValue(dtype, values), 2u) << Name(dtype);
  }
  EXPECT_EQ(FindUnfitValue(DType::kF16, std::vector<float>{65504, 1e30f}), 1u);
  EXPECT_EQ(FindUnfitValue(DType::kF32, std::vector<float>{3e38f, 1e-40f, NAN}), 2u);
}

TEST(Encode, ImportanceMovesTheError) {
  const std::vector<float> values = BellShaped(1024, 7);
  std::vector<float> importance(values.size());
  for (size_t i = 0; i < importance.size(); ++i)
    importance[i] = i % 8 == 3 ? 50.0f : 0.5f + static_cast<float>(i % 5);
  for (const DType dtype : QuantisedTypes()) {
    const Coded plain = Encode(dtype, values), weighted = Encode(dtype, values, importance);
    const double before = Error(values, plain.values, importance),
                 after = Error(values, weighted.values, importance);
    EXPECT_LT(after, before) << Name(dtype);
  }
}

// P60: importance of zero everywhere says nothing.
TEST(Encode, ZeroImportanceIsUniform) {
  const std::vector<float> values = BellShaped(512, 8), zeros(512), tens(512, 10);
  for (const DType dtype : QuantisedTypes()) {
    const Coded plain = Encode(dtype, values);
    EXPECT_EQ(Encode(dtype, values, zeros).blocks, plain.blocks) << Name(dtype);
    EXPECT_EQ(Encode(dtype, values, tens).blocks, Encode(dtype, values, std::vector<float>(512, 8)).blocks);
  }
}

// The same bytes on every machine and with every compiler: frozen, plain and weighted.
TEST(Encode, GoldenHashes) {
  const std::vector<float> values = BellShaped(2048, 10);
  std::vector<float> importance(values.size());
  for (size_t i = 0; i < importance.size(); ++i) importance[i] = static_cast<float>(1 + i * 7 % 13);
  const std::pair<DType, uint64_t> golden[] = {
      {DType::kQ4_0, 13193135827947372389u},   {DType::kQ4_1, 3167765703973983816u},
      {DType::kQ5_0, 14574891429984602804u},   {DType::kQ5_1, 8952917455044284662u},
      {DType::kQ8_0, 7613935315859239660u},    {DType::kQ2_K, 7064683583461109391u},
      {DType::kQ3_K, 10304716451334719486u},   {DType::kQ4_K, 4907050821656286063u},
      {DType::kQ5_K, 14091562167478637781u},   {DType::kQ6_K, 5117632251475633833u},
      {DType::kIQ2_XXS, 5458542398418125299u}, {DType::kIQ2_XS, 9900990104825633400u},
      {DType::kIQ3_XXS, 1441531483144377269u}, {DType::kIQ1_S, 6028247830176272709u},
      {DType::kIQ4_NL, 12146524577189639817u}, {DType::kIQ3_S, 306400839280050716u},
      {DType::kIQ2_S, 7087145637908845606u},   {DType::kIQ4_XS, 7076890745187720923u},
      {DType::kIQ1_M, 4675739342221382401u},   {DType::kTQ1_0, 17447238626209864714u},
      {DType::kTQ2_0, 10304175335391240042u},  {DType::kMXFP4, 6817802908880151828u},
      {DType::kNVFP4, 7205009940833797435u},   {DType::kQ1_0, 16945604623783252445u},
      {DType::kQ2_0, 10105892279583143256u},
  };
  EXPECT_EQ(std::size(golden), QuantisedTypes().size());
  for (const auto& [dtype, hash] : golden) {
    const uint64_t plain = HashBytes(Encode(dtype, values).blocks);
    EXPECT_EQ(HashBytes(Encode(dtype, values, importance).blocks, plain), hash) << Name(dtype);
  }
}

// Rows are blocks that know nothing of each other.
TEST(Encode, BlockByBlock) {
  const std::vector<float> values = BellShaped(1024, 9);
  for (const DType dtype : QuantisedTypes()) {
    const Coded whole = Encode(dtype, values);
    const size_t length = Traits(dtype).block_length, bytes = Traits(dtype).block_bytes;
    for (size_t b = 0; b < values.size() / length; b += 3) {
      const Coded block = Encode(dtype, std::span(values).subspan(b * length, length));
      EXPECT_EQ(std::memcmp(block.blocks.data(), whole.blocks.data() + b * bytes, bytes), 0) << Name(dtype);
    }
  }
}

}  // namespace
}  // namespace sluice::formats
