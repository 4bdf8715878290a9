// Plans from headers, shapes and configurations.
#include <gmock/gmock.h>

#include "api/config_shape.h"
#include "api/fixture.h"
#include "quantize/synth.h"
#include "sluice/plan.h"

namespace sluice {
namespace {

using testing::HasSubstr;

class SubjectTest : public ApiTest {};

constexpr char kQwen[] = R"({"model_type": "qwen2", "num_hidden_layers": 64, "hidden_size": 5120,
  "intermediate_size": 27648, "num_attention_heads": 40, "num_key_value_heads": 8, "max_position_embeddings": 32768,
  "vocab_size": 152064, "tie_word_embeddings": false})";

TEST_F(SubjectTest, ShapeConfigAndTypesAgree) {
  const quantize::Mix& mix = **quantize::FindMix("Q4_K_M");
  const auto shape = PlanSubject::OfShape(**quantize::FindShape("qwen2.5-32b"), mix);
  const auto config = PlanSubject::OfConfig(kQwen, mix);
  ASSERT_TRUE(shape) << shape.error().message;
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(shape->facts().parameters, 32'763'876'352u);
  EXPECT_EQ(config->facts().parameters, shape->facts().parameters);
  EXPECT_EQ(config->facts().tensor_bytes, shape->facts().tensor_bytes);
  // 64 layers × 8 heads × (128 + 128) × 2 bytes.
  EXPECT_EQ(shape->facts().kv_bytes({.context_length = 64}), 64u * 256 * kKiB);
  EXPECT_GE(shape->facts().weight_bytes({}).pinned_bytes, shape->facts().swept_bytes());

  const auto other = PlanSubject::OfShape(**quantize::FindShape("qwen2.5-32b"), **quantize::FindMix("Q2_K"));
  const auto converted = shape->InType(**quantize::FindMix("Q2_K"));
  ASSERT_TRUE(other);
  ASSERT_TRUE(converted);
  EXPECT_EQ(converted->tensor_bytes, other->facts().tensor_bytes);
}

TEST_F(SubjectTest, FusedOperatorsTakeTwoThirdsOfTheActivations) {
  const auto shape =
      PlanSubject::OfShape(**quantize::FindShape("qwen2.5-32b"), **quantize::FindMix("Q4_K_M"));
  ASSERT_TRUE(shape) << shape.error().message;
  kv::Settings settings{.context_length = 512, .batch = 512};
  const auto bytes = [&](runtime::Fusion fusion) {
    return shape->facts().activation_bytes(settings, 2, fusion);
  };
  uint64_t before = UINT64_MAX;
  for (const runtime::Fusion fusion : runtime::kFusionLevels) {
    EXPECT_LE(bytes(fusion), before) << runtime::FusionName(fusion);
    before = bytes(fusion);
  }
  EXPECT_LE(before, bytes(runtime::Fusion::kNone) / 100 * 66);
  // Scores in memory grow with the context.
  settings.context_length = 8192;
  EXPECT_EQ(bytes(runtime::Fusion::kAll), before);
  EXPECT_LE(before, bytes(runtime::Fusion::kNone) / 5);
}

TEST_F(SubjectTest, AHeaderIsEnough) {
  const std::string whole = whole::TinyLlama().BuildString();
  const auto cut = PlanSubject::OfFile(folder_.Write("cut.gguf", whole.substr(0, whole.size() - 1000)));
  const auto full = PlanSubject::OfFile(folder_.Write("full.gguf", whole));
  ASSERT_TRUE(cut) << cut.error().message;
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_EQ(cut->facts().tensor_bytes, full->facts().tensor_bytes);
  EXPECT_EQ(cut->facts().tokenizer_bytes, full->facts().tokenizer_bytes);
}

// What Gemma 3's first files leave to the program's defaults.
TEST_F(SubjectTest, OfAModelThatAlsoSeesTheTextPartIsPlanned) {
  const auto shape = ShapeOfConfig(R"({"model_type": "gemma3", "vision_config": {"hidden_size": 1152},
    "text_config": {"num_hidden_layers": 34, "hidden_size": 2560, "intermediate_size": 10240,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208}})");
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->architecture, "gemma3");
  EXPECT_EQ(shape->d_model, 2560u);
  EXPECT_EQ(shape->sliding_window, 4096u);
  EXPECT_EQ(shape->context_length, 8192u);
  EXPECT_TRUE(shape->tied && shape->qk_norm && shape->post_norms);
}

TEST_F(SubjectTest, BrokenConfigsNameTheKey) {
  const auto refusal = [](const std::string& text) {
    const auto shape = ShapeOfConfig(text);
    return shape ? "read" : shape.error().message;
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kQwen;
    text.replace(text.find(from), from.size(), to);
    return refusal(text);
  };
  EXPECT_EQ(refusal(kQwen), "read");
  for (const char* text : {"", "[]", "{", "\"x\""}) EXPECT_THAT(refusal(text), HasSubstr("one JSON object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("model_type"));
  EXPECT_THAT(with("\"qwen2\"", "\"rwkv\""), HasSubstr("'rwkv'"));
  EXPECT_THAT(with("64", "-1"), HasSubstr("num_hidden_layers"));
  EXPECT_THAT(with("5120", "1e30"), HasSubstr("hidden_size"));
  EXPECT_THAT(with("32768", "999999999"),
              HasSubstr("max_position_embeddings is 999999999; expected at most"));
  EXPECT_THAT(with("\"qwen2\"", "\"phi3\""), HasSubstr("'phi3' can't be planned"));
  EXPECT_THAT(with("\"vocab_size\": 152064", "\"vocab_size\": 99999999999"), HasSubstr("vocab_size"));
  EXPECT_THAT(with("\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7"), HasSubstr("divide"));
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("one JSON object"));
}

}  // namespace
}  // namespace sluice
