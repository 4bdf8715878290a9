#include "convert/hyperparameters.h"

#include <gmock/gmock.h>

namespace sluice::convert {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kLlama[] =
    R"({"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "intermediate_size": 8192,
  "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072,
  "rms_norm_eps": 1e-05, "tie_word_embeddings": true})";

struct Read {
  gguf::Metadata metadata;
  Result<Hyperparameters> parameters = Fail(ErrorCode::kNotFound, "not read");

  std::string error() const { return parameters ? "read" : parameters.error().message; }
};

Read Parse(const std::string& text) {
  Read read;
  const auto json = ParseJsonObject(text, "config.json");
  EXPECT_TRUE(json);
  read.parameters = ReadHyperparameters(JsonObject(*json, "config.json"), read.metadata);
  return read;
}

// kLlama with further keys.
Read With(const std::string& keys, std::string base = kLlama) {
  base.pop_back();
  return Parse(base + ", " + keys + "}");
}

void ExpectSameKeys(const gguf::Metadata& a, const gguf::Metadata& b) {
  ASSERT_EQ(a.entries().size(), b.entries().size());
  for (const gguf::Entry& entry : a.entries()) {
    const gguf::Entry* other = b.Find(entry.key);
    ASSERT_NE(other, nullptr) << entry.key;
    EXPECT_TRUE(std::ranges::equal(entry.payload, other->payload)) << entry.key;
  }
}

TEST(HyperparametersTest, Llama) {
  const Read read = With(R"("rope_theta": 500000.0)");
  ASSERT_TRUE(read.parameters) << read.error();
  EXPECT_EQ(*read.metadata.GetString("general.architecture"), "llama");
  EXPECT_EQ(*read.metadata.GetU32("llama.block_count"), 16u);
  EXPECT_EQ(*read.metadata.GetU32("llama.attention.head_count_kv"), 8u);
  EXPECT_EQ(*read.metadata.GetU32("llama.rope.dimension_count"), 64u);
  EXPECT_EQ(*read.metadata.GetF32("llama.rope.freq_base"), 500000.0f);
  EXPECT_TRUE(read.parameters->tied);
}

TEST(HyperparametersTest, BothSchemasOfRopeSettingsAgree) {
  struct Pair {
    const char* before;
    const char* after;
  };
  const Pair pairs[] = {
      {R"("rope_theta": 1e6)", R"("rope_parameters": {"rope_type": "default", "rope_theta": 1e6})"},
      {R"("rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 4.0})",
       R"("rope_parameters": {"rope_theta": 1e4, "rope_type": "linear", "factor": 4.0})"},
      {R"("rope_theta": 1e6, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})",
       R"("rope_parameters": {"rope_theta": 1e6, "rope_type": "yarn", "factor": 4.0,
          "original_max_position_embeddings": 32768})"},
      {R"("rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})",
       R"("rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})"}};
  for (const auto& [before, after] : pairs) {
    const Read a = With(before), b = With(after);
    ASSERT_TRUE(a.parameters) << a.error();
    ASSERT_TRUE(b.parameters) << b.error();
    ExpectSameKeys(a.metadata, b.metadata);
    ASSERT_EQ(a.parameters->tensors.size(), b.parameters->tensors.size());
    for (size_t i = 0; i < a.parameters->tensors.size(); ++i)
      EXPECT_EQ(a.parameters->tensors[i].values, b.parameters->tensors[i].values);
  }
}

TEST(HyperparametersTest, Llama3FactorsGoFromOneToTheWholeFactor) {
  const Read read = With(R"("rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 32.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})");
  ASSERT_TRUE(read.parameters) << read.error();
  ASSERT_THAT(read.parameters->tensors, SizeIs(1));
  const ComputedTensor& factors = read.parameters->tensors[0];
  EXPECT_EQ(factors.name, "rope_freqs.weight");
  ASSERT_THAT(factors.values, SizeIs(32));
  EXPECT_EQ(factors.values.front(), 1.0f);
  EXPECT_EQ(factors.values.back(), 32.0f);
  EXPECT_TRUE(std::ranges::is_sorted(factors.values));
}

TEST(HyperparametersTest, LongRope) {
  constexpr char kPhi3[] =
      R"({"model_type": "phi3", "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64,
    "num_attention_heads": 4, "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
    "rms_norm_eps": 1e-05})";
  const Read read = With(
      R"("rope_scaling": {"type": "longrope", "long_factor": [1, 2, 3, 4], "short_factor": [1, 1, 1, 1]})",
      kPhi3);
  ASSERT_TRUE(read.parameters) << read.error();
  ASSERT_THAT(read.parameters->tensors, SizeIs(2));
  EXPECT_THAT(read.parameters->tensors[0].values, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(*read.metadata.GetU32("phi3.rope.scaling.original_context_length"), 4096u);
  EXPECT_NEAR(*read.metadata.GetF32("phi3.rope.scaling.attn_factor"), 1.1902380714238083, 1e-6);
  EXPECT_THAT(
      With(R"("rope_scaling": {"type": "longrope", "long_factor": [1], "short_factor": [1]})", kPhi3).error(),
      HasSubstr("long_factor is [1]; expected 4 numbers"));
}

TEST(HyperparametersTest, WindowsAsAListOrAPeriod) {
  constexpr char kGemma[] =
      R"({"model_type": "gemma3_text", "hidden_size": 64, "num_hidden_layers": 6, "intermediate_size": 64,
    "num_attention_heads": 4, "head_dim": 16, "max_position_embeddings": 4096, "rms_norm_eps": 1e-06, "sliding_window": 512,
    "rope_local_base_freq": 10000.0, "rope_theta": 1000000.0, "query_pre_attn_scalar": 256})";
  const Read list = With(R"("layer_types": ["sliding_attention", "sliding_attention", "full_attention",
                           "sliding_attention", "sliding_attention", "full_attention"])",
                         kGemma);
  ASSERT_TRUE(list.parameters) << list.error();
  EXPECT_EQ(*list.metadata.GetU32("gemma3.attention.sliding_window_pattern"), 3u);
  EXPECT_EQ(*list.metadata.GetF32("gemma3.rope.freq_base_swa"), 10000.0f);
  EXPECT_EQ(*list.metadata.GetF32("gemma3.attention.scale"), 1.0f / 16);
  EXPECT_TRUE(list.parameters->tied);
  const Read period = With(R"("sliding_window_pattern": 3)", kGemma);
  ASSERT_TRUE(period.parameters) << period.error();
  ExpectSameKeys(list.metadata, period.metadata);
  EXPECT_THAT(With(R"("layer_types": ["full_attention", "sliding_attention", "full_attention",
                      "full_attention", "full_attention", "full_attention"])",
                   kGemma)
                  .error(),
              HasSubstr("layer_types"));
}

TEST(HyperparametersTest, WhatCantBeSaidIsRefusedOrRemarked) {
  EXPECT_THAT(With(R"("rope_scaling": {"type": "spiral", "factor": 2})").error(),
              HasSubstr("'spiral' is not known"));
  EXPECT_THAT(With(R"("rope_scaling": {"type": "linear"})").error(), HasSubstr("has no factor"));
  EXPECT_THAT(With(R"("num_local_experts": 8)").error(), HasSubstr("mixtures of experts"));
  EXPECT_THAT(With(R"("rope_scaling": {"type": "dynamic", "factor": 2})").parameters->warnings,
              ElementsAre(HasSubstr("dynamic")));
}

TEST(HyperparametersTest, BrokenConfigsNameTheKey) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kLlama;
    text.replace(text.find(from), from.size(), to);
    return Parse(text).error();
  };
  EXPECT_THAT(with("\"llama\"", "\"mamba\""),
              HasSubstr("type 'mamba' are not known; these are: llama, mistral"));
  EXPECT_THAT(with("2048", "-1"), HasSubstr("hidden_size is -1; expected a whole number"));
  EXPECT_THAT(with("2048", "\"wide\""), HasSubstr("hidden_size is \"wide\""));
  EXPECT_THAT(with("2048", "18446744073709551615"), HasSubstr("hidden_size"));
  EXPECT_THAT(with("\"num_hidden_layers\": 16, ", ""), HasSubstr("has no num_hidden_layers"));
  EXPECT_THAT(with("1e-05", "[]"), HasSubstr("rms_norm_eps is []"));
  EXPECT_THAT(with("\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7"),
              HasSubstr("divides the 32 heads"));
  EXPECT_THAT(with("\"max_position_embeddings\": 131072,", ""), HasSubstr("has no max_position_embeddings"));
}

TEST(HyperparametersTest, WhatProgramsComputeIsChecked) {
  EXPECT_EQ(With(R"("hidden_act": "silu")").error(), "read");
  EXPECT_THAT(With(R"("hidden_act": "gelu")").error(), HasSubstr("hidden_act is 'gelu'"));
  const std::string falcon = R"({"model_type": "falcon", "hidden_size": 128, "num_hidden_layers": 2,
      "num_attention_heads": 4, "layer_norm_epsilon": 1e-5})";
  const Read read = Parse(falcon);
  ASSERT_TRUE(read.parameters) << read.error();
  EXPECT_EQ(*read.metadata.GetU32("falcon.context_length"), 2048u);
  EXPECT_EQ(read.parameters->heads.keys, 1u);
  EXPECT_THAT(With(R"("alibi": true)", falcon).error(), HasSubstr("alibi is true"));
  EXPECT_THAT(With(R"("parallel_attn": false)", falcon).error(), HasSubstr("parallel_attn is false"));
  EXPECT_EQ(With(R"("multi_query": false)", falcon).parameters->heads.keys, 4u);
}

TEST(HyperparametersTest, LettersForLocalAndGlobalLayers) {
  const std::string exaone = R"({"model_type": "exaone4", "hidden_size": 128, "num_hidden_layers": 8,
      "num_attention_heads": 4, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "sliding_window": 512})";
  const Read read = With(R"("sliding_window_pattern": "LLLG")", exaone);
  ASSERT_TRUE(read.parameters) << read.error();
  EXPECT_EQ(*read.metadata.GetU32("exaone4.attention.sliding_window_pattern"), 4u);
  EXPECT_THAT(With(R"("sliding_window_pattern": "LGLG")", exaone).error(), HasSubstr("LGLG"));
}

}  // namespace
}  // namespace sluice::convert
