#include "quantize/mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace sluice::quantize {
namespace {

using formats::DType;

DType Format(std::string_view mix, MatrixPlace place) { return FormatFor(**FindMix(mix), place); }

TEST(Mix, Q4_K_M) {
  EXPECT_EQ(Format("Q4_K_M", {Role::kOutput}), DType::kQ6_K);
  EXPECT_EQ(Format("q4_k_m", {Role::kTokenEmbedding}), DType::kQ4_K);
  EXPECT_EQ(Format("Q4_K_M", {Role::kTokenEmbedding, 0, 1, 1, true}),
            DType::kQ6_K);  // tied: it is the output too
  EXPECT_EQ(Format("Q4_K_M", {Role::kFfnGate, 5, 32}), DType::kQ4_K);
  // Of 32 layers: 0 to 3, every third from 6 on, 28 to 31.
  std::set<uint32_t> more;
  for (uint32_t layer = 0; layer < 32; ++layer) {
    const DType down = Format("Q4_K_M", {Role::kFfnDown, layer, 32});
    EXPECT_EQ(Format("Q4_K_M", {Role::kAttnV, layer, 32}), down);
    if (down == DType::kQ6_K) more.insert(layer);
  }
  EXPECT_EQ(more, (std::set<uint32_t>{0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31}));
}

TEST(Mix, OtherUsualMixes) {
  EXPECT_EQ(Format("Q3_K_M", {Role::kAttnV, 1, 64}), DType::kQ5_K);
  EXPECT_EQ(Format("Q3_K_M", {Role::kAttnV, 2, 64}), DType::kQ4_K);
  EXPECT_EQ(Format("Q3_K_M", {Role::kFfnDown, 3, 64}), DType::kQ5_K);
  EXPECT_EQ(Format("Q3_K_M", {Role::kFfnDown, 4, 64}), DType::kQ4_K);
  EXPECT_EQ(Format("Q2_K", {Role::kAttnV, 9, 64, 5}), DType::kQ4_K);
  EXPECT_EQ(Format("Q2_K", {Role::kAttnV, 9, 64, 2}), DType::kQ3_K);
  EXPECT_EQ(Format("IQ4_XS", {Role::kFfnDown, 7, 64}), DType::kQ5_K);
  EXPECT_EQ(Format("IQ4_XS", {Role::kFfnDown, 8, 64}), DType::kIQ4_XS);
  EXPECT_EQ(Format("IQ1_S", {Role::kOutput}), DType::kQ5_K);
  EXPECT_EQ(Format("IQ3_XXS", {Role::kTokenEmbedding}), DType::kIQ3_S);
  for (const char* plain : {"F32", "F16", "BF16", "Q8_0"}) {
    EXPECT_EQ(Format(plain, {Role::kOutput}), Format(plain, {Role::kFfnUp})) << plain;
  }
}

TEST(Mix, RowsThatAreNoWholeBlocks) {
  const auto format = [](std::string_view mix, uint64_t columns) {
    return Format(mix, {.role = Role::kFfnGate, .columns = columns});
  };
  EXPECT_EQ(format("Q4_K_M", 256), DType::kQ4_K);
  EXPECT_EQ(format("Q4_K_M", 96), DType::kQ5_0);
  EXPECT_EQ(format("Q5_K_M", 96), DType::kQ5_1);
  EXPECT_EQ(format("Q6_K", 96), DType::kQ8_0);
  EXPECT_EQ(format("Q2_K", 96), DType::kQ4_0);
  EXPECT_EQ(format("IQ2_XS", 96), DType::kIQ4_NL);
  EXPECT_EQ(format("Q4_K_M", 100), DType::kF16);
  EXPECT_EQ(format("Q8_0", 100), DType::kF16);
}

TEST(Mix, EveryMixNamesARealFormatForEveryPlace) {
  std::set<uint32_t> file_types;
  for (const Mix& mix : AllMixes()) {
    EXPECT_TRUE(file_types.insert(mix.file_type).second) << mix.name;
    for (int role = 0; role <= static_cast<int>(Role::kFfnDown); ++role) {
      for (uint32_t layer = 0; layer < 16; ++layer) {
        const DType dtype = FormatFor(mix, {static_cast<Role>(role), layer, 16, 4});
        EXPECT_EQ(256 % formats::Traits(dtype).block_length, 0u);
      }
    }
  }
  EXPECT_THAT(FindMix("Q9_X").error().message, testing::HasSubstr("Q4_K_M"));
}

}  // namespace
}  // namespace sluice::quantize
