#include "quantize/type_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/builder.h"
#include "quantize/pattern.h"
#include "quantize/tensor_role.h"

namespace sluice::quantize {
namespace {

using formats::DType;
using ::testing::HasSubstr;

TEST(Pattern, WithoutWildcardsAPartOfTheName) {
  EXPECT_TRUE(Matches("ffn_down", "blk.3.ffn_down.weight"));
  EXPECT_TRUE(Matches("blk.3.", "blk.3.ffn_down.weight"));
  EXPECT_FALSE(Matches("blk.3.", "blk.31.ffn_down.weight"));
  EXPECT_FALSE(Matches("FFN_DOWN", "blk.3.ffn_down.weight"));
}

TEST(Pattern, WildcardsMatchTheWholeName) {
  EXPECT_TRUE(Matches("blk.*.ffn_*.weight", "blk.3.ffn_down.weight"));
  EXPECT_FALSE(Matches("ffn_*", "blk.3.ffn_down.weight"));
  EXPECT_TRUE(Matches("*ffn_*", "blk.3.ffn_down.weight"));
  EXPECT_TRUE(Matches("blk.?.*", "blk.3.ffn_down.weight"));
  EXPECT_FALSE(Matches("blk.?.*", "blk.31.ffn_down.weight"));
  EXPECT_TRUE(Matches("blk.[0-357].*", "blk.5.x"));
  EXPECT_FALSE(Matches("blk.[0-357].*", "blk.4.x"));
  EXPECT_TRUE(Matches("blk.[!0-3].*", "blk.4.x"));
  EXPECT_FALSE(Matches("blk.[!0-3].*", "blk.2.x"));
  EXPECT_TRUE(Matches("a*b*c*", "a-b-b-c"));
  EXPECT_FALSE(Matches("a*b*c", "a-b-b"));
  EXPECT_TRUE(Matches("[abc", "[abc"));  // nothing closes it
  EXPECT_TRUE(Matches("*", ""));
  EXPECT_FALSE(Matches("?", ""));
  const std::string many(2000, 'a');
  EXPECT_FALSE(Matches("*a*a*a*a*a*a*a*a*a*a*b", many));  // at once, not after the end of the universe
}

TEST(TensorRole, NamesAndPlaces) {
  EXPECT_EQ(RoleOf("blk.12.attn_v.weight"), Role::kAttnV);
  EXPECT_EQ(RoleOf("blk.0.ffn_down_exps.weight"), Role::kFfnDown);
  EXPECT_EQ(RoleOf("output.weight"), Role::kOutput);
  EXPECT_EQ(RoleOf("blk.0.attn_norm.weight"), std::nullopt);
  EXPECT_EQ(SplitLayer("blk.12.attn_v.weight").layer, 12u);
  EXPECT_LE(SplitLayer("blk.99999999999999999999.x").layer, 1000000u);
  EXPECT_EQ(SplitLayer("blk.").name, "");
}

gguf::GgufFile Model(bool tied = false) {
  gguf::testing::ModelBuilder model;
  model.metadata().SetU32("llama.block_count", 2);
  model.metadata().SetU32("llama.attention.head_count", 8);
  model.metadata().SetU32("llama.attention.head_count_kv", 2);
  model.AddRandom("token_embd.weight", DType::kF16, {256, 8});
  model.AddRandom("blk.0.attn_v.weight", DType::kF16, {256, 8});
  model.AddRandom("blk.0.attn_norm.weight", DType::kF32, {256});
  model.AddRandom("blk.0.ffn_gate_inp.weight", DType::kF32, {256, 4});
  model.AddRandom("blk.0.ffn_up.weight", DType::kF32, {96, 4});
  model.AddRandom("blk.1.ffn_up.weight", DType::kF32, {100, 4});
  model.AddRandom("blk.1.ffn_down.weight", DType::kBF16, {256, 4});
  if (!tied) model.AddRandom("output.weight", DType::kF16, {256, 8});
  return std::move(*gguf::testing::OpenBytes(model.Build()));
}

Result<std::vector<TypeChoice>> Choose(const gguf::GgufFile& file, std::string_view mix,
                                       TypeWishes wishes = {}) {
  wishes.mix = *FindMix(mix);
  return ChooseTypes(file.tensors(), file.metadata(), wishes);
}

std::vector<DType> Types(const Result<std::vector<TypeChoice>>& choices) {
  EXPECT_TRUE(choices) << choices.error().message;
  std::vector<DType> types;
  for (const TypeChoice& choice : *choices) types.push_back(choice.dtype);
  return types;
}

TEST(TypeChoice, MixAndSubstitutes) {
  const gguf::GgufFile file = Model();
  const auto choices = Choose(file, "Q4_K_M");
  EXPECT_EQ(Types(choices), (std::vector{DType::kQ4_K, DType::kQ4_K, DType::kF32, DType::kF32, DType::kQ5_0,
                                         DType::kF16, DType::kQ6_K, DType::kQ6_K}));
  EXPECT_FALSE((*choices)[0].substitute);
  EXPECT_TRUE((*choices)[4].substitute);
  EXPECT_FALSE((*choices)[3].quantisable);
  // Four query heads share a KV head: values get more bits.
  EXPECT_EQ(Types(Choose(file, "Q2_K"))[1], DType::kQ4_K);
}

TEST(TypeChoice, WishesComeBeforeTheMix) {
  const gguf::GgufFile file = Model();
  TypeWishes wishes{.token_embedding = DType::kQ8_0, .output = DType::kQ5_K};
  EXPECT_EQ(Types(Choose(file, "Q4_K_M", wishes)).front(), DType::kQ8_0);
  EXPECT_EQ(Types(Choose(file, "Q4_K_M", wishes)).back(), DType::kQ5_K);
  wishes.overrides = {{"*.weight", DType::kQ4_0}, {"output", DType::kF16}, {"ffn_up", DType::kBF16}};
  EXPECT_EQ(Types(Choose(file, "Q4_K_M", wishes)),
            (std::vector{DType::kQ4_0, DType::kQ4_0, DType::kF32, DType::kF32, DType::kBF16, DType::kBF16,
                         DType::kQ4_0, DType::kF16}));
}

TEST(TypeChoice, TiedEmbeddingIsTheOutputToo) {
  const gguf::GgufFile file = Model(true);
  EXPECT_EQ(Types(Choose(file, "Q4_K_M")).front(), DType::kQ6_K);
  EXPECT_EQ(Types(Choose(file, "Q4_K_M", {.output = DType::kQ8_0})).front(), DType::kQ8_0);
  EXPECT_EQ(Types(Choose(file, "Q4_K_M", {.token_embedding = DType::kQ5_0, .output = DType::kQ8_0})).front(),
            DType::kQ5_0);
}

TEST(TypeChoice, WhatCannotBe) {
  const gguf::GgufFile file = Model();
  const auto unmatched = Choose(file, "Q4_K_M", {.overrides = {{"ffn_dwon", DType::kQ8_0}}});
  EXPECT_EQ(unmatched.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(unmatched.error().message, HasSubstr("ffn_dwon"));
  EXPECT_FALSE(Choose(file, "Q4_K_M", {.overrides = {{"attn_norm", DType::kQ8_0}}}));  // is never quantised
  const auto ragged = Choose(file, "Q4_K_M", {.overrides = {{"blk.0.ffn_up", DType::kQ4_K}}});
  EXPECT_THAT(ragged.error().message,
              HasSubstr("blk.0.ffn_up.weight: its rows of 96 are no whole blocks of Q4_K"));
}

TEST(TypeChoice, ParsesWishes) {
  const auto wish = ParseOverride("blk.*.ffn_down.weight=q6_k");
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->pattern, "blk.*.ffn_down.weight");
  EXPECT_EQ(wish->dtype, DType::kQ6_K);
  for (const char* wrong : {"ffn_down", "=Q6_K", "ffn_down=", "ffn_down=Q6_X", "ffn_down=I32"})
    EXPECT_EQ(ParseOverride(wrong).error().code, ErrorCode::kInvalidArgument) << wrong;
}

}  // namespace
}  // namespace sluice::quantize
