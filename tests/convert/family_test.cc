#include "convert/family.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/recipe.h"

namespace sluice::convert {
namespace {

std::string PlaceIn(const char* type, std::string_view name) {
  const auto places = PlacesOf(*FindFamily(type), name);
  return places.empty() ? "" : places.front().name;
}

TEST(FamilyTest, NamesOfTensors) {
  EXPECT_EQ(PlaceIn("llama", "model.layers.11.self_attn.q_proj.weight"), "blk.11.attn_q.weight");
  EXPECT_EQ(PlaceIn("qwen2", "model.layers.0.self_attn.k_proj.bias"), "blk.0.attn_k.bias");
  EXPECT_EQ(PlaceIn("gemma2", "model.layers.3.post_attention_layernorm.weight"),
            "blk.3.post_attention_norm.weight");
  EXPECT_EQ(PlaceIn("llama", "model.layers.3.post_attention_layernorm.weight"), "blk.3.ffn_norm.weight");
  EXPECT_EQ(PlaceIn("gemma3_text", "language_model.model.embed_tokens.weight"), "token_embd.weight");
  EXPECT_EQ(PlaceIn("gpt2", "transformer.h.1.attn.c_attn.weight"), "blk.1.attn_qkv.weight");
  EXPECT_EQ(PlaceIn("gpt2", "wpe.weight"), "position_embd.weight");
}

TEST(FamilyTest, Wrappers) {
  for (const char* wrapper : {"", "language_model."})
    EXPECT_EQ(PlaceIn("gemma3_text", wrapper + std::string("model.norm.weight")), "output_norm.weight")
        << wrapper;
  EXPECT_EQ(PlaceIn("gemma3_text", "model.language_model.norm.weight"), "output_norm.weight");
  EXPECT_EQ(PlaceIn("gpt_neox", "gpt_neox.layers.0.attention.dense.bias"), "blk.0.attn_output.bias");
}

TEST(FamilyTest, OneTensorForThree) {
  const auto places = PlacesOf(*FindFamily("internlm2"), "model.layers.3.attention.wqkv.weight");
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].name, "blk.3.attn_q.weight");
  EXPECT_EQ(places[2].name, "blk.3.attn_v.weight");
}

TEST(FamilyTest, Numbers) {
  const auto place = NumberPlaceOf(*FindFamily("apertus"), "model.layers.12.mlp.act_fn.beta");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->key, "xielu.beta");
  EXPECT_EQ(place->layer, 12u);
  EXPECT_FALSE(NumberPlaceOf(*FindFamily("llama"), "model.layers.12.mlp.act_fn.beta"));
}

TEST(FamilyTest, NamesWithoutAPlace) {
  for (const char* name :
       {"", "weight", "model.layers.x.mlp.up_proj.weight", "model.layers..mlp.up_proj.weight",
        "model.layers.01.mlp.up_proj.weight", "model.layers.12345678.mlp.up_proj.weight",
        "model.layers.1.mlp.up_proj.qweight", "vision_tower.patch.weight", "model.norm.weight.weight"}) {
    EXPECT_EQ(PlaceIn("llama", name), "") << name;
  }
}

TEST(FamilyTest, Changes) {
  const auto change = [](const char* type, const char* name) {
    return PlacesOf(*FindFamily(type), name).front().change;
  };
  EXPECT_EQ(change("llama", "model.layers.0.self_attn.q_proj.weight"), Change::kPairQueries);
  EXPECT_EQ(change("llama", "model.layers.0.self_attn.k_proj.weight"), Change::kPairKeys);
  EXPECT_EQ(change("llama", "model.layers.0.self_attn.v_proj.weight"), Change::kNone);
  EXPECT_EQ(change("gemma", "model.norm.weight"), Change::kAddOne);
  EXPECT_EQ(change("gemma3_text", "model.layers.0.self_attn.q_norm.weight"), Change::kAddOne);
  EXPECT_EQ(change("nemotron", "model.norm.bias"), Change::kNone);
  EXPECT_EQ(change("gpt2", "h.0.mlp.c_fc.weight"), Change::kTranspose);
  EXPECT_EQ(change("gpt2", "h.0.mlp.c_fc.bias"), Change::kNone);
}

// Families whose checkpoints turn neighbours' halves and whose GGUF turns neighbours, and only they, pair
// their heads.
TEST(FamilyTest, EveryFamilyRuns) {
  constexpr std::string_view kTurnPairs[] = {"cohere", "cohere2", "glm4", "ernie4_5"};
  for (const Family& family : AllFamilies()) {
    const model::Recipe* recipe = model::FindRecipe(family.architecture);
    ASSERT_NE(recipe, nullptr) << family.architecture;
    const bool turns_pairs_itself = std::ranges::count(kTurnPairs, family.model_type) > 0;
    EXPECT_EQ(family.pairs_heads, recipe->rope == model::RopeStyle::kInterleaved && !turns_pairs_itself)
        << family.model_type;
  }
}

}  // namespace
}  // namespace sluice::convert
