// The bundled model in every mix that `quantize` makes: it loads, and what it says next is like what it said
// before, by the mix's bits a weight. One of the six layers is in the mix, so that the slow searches don't
// take long, under sanitizers least of all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "platform/temp_folder.h"
#include "sluice/conversation.h"
#include "sluice/eval.h"
#include "sluice/quantize.h"

namespace sluice {
namespace {

const std::string kModels = SLUICE_SOURCE_DIR "/models/";

class Quantized : public testing::TestWithParam<std::string> {};

std::vector<float> LastLogits(const Engine& engine, const std::string& path,
                              const std::vector<TokenId>& ids) {
  auto model = Model::Open(engine, path);
  EXPECT_TRUE(model) << model.error().message;
  auto conversation = Conversation::Create(engine, *model, {.context_length = 256});
  EXPECT_TRUE(conversation) << conversation.error().message;
  EXPECT_TRUE((*conversation)->session().Read(ids));
  const auto logits = (*conversation)->session().logits();
  return {logits.begin(), logits.end()};
}

// The cosine of the angle between the logits less their means.
double Likeness(const std::vector<float>& a, const std::vector<float>& b) {
  double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    mean_a += a[i] / static_cast<double>(a.size());
    mean_b += b[i] / static_cast<double>(b.size());
  }
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

size_t UpOfLayer0(const quantize::QuantizeReport& report) {
  const auto at = std::ranges::find(report.tensors, "blk.0.ffn_up.weight", &quantize::TensorReport::name);
  return static_cast<size_t>(at - report.tensors.begin());
}

// A little below what was measured. Types of two to four codes are for models that were trained with them.
double LeastLikeness(const std::string& type, double bits) {
  if (type.starts_with("TQ") || type == "Q1_0" || type == "Q2_0") return 0.5;
  if (bits > 8) return 0.999;
  if (bits > 5) return 0.998;
  if (bits > 4) return 0.99;
  if (bits > 3) return 0.98;
  if (bits > 2.2) return 0.95;
  return 0.8;
}

TEST_P(Quantized, LoadsAndAnswers) {
  const TempFolder folder;
  const auto engine = Engine::Create({.threads = 2});
  ASSERT_TRUE(engine) << engine.error().message;
  quantize::QuantizeOptions options;
  options.types.mix = *quantize::FindMix(GetParam());
  options.types.overrides = {{"blk.[1-5].*", formats::DType::kQ8_0}};
  const std::string source = kModels + "sluice-demo-f16.gguf", path = folder / "q.gguf";
  const auto report = quantize::QuantizeFile(source, path, options, *(*engine)->context().pool);
  ASSERT_TRUE(report) << report.error().message;

  std::ifstream in(kModels + "golden.json");
  const nlohmann::json about = nlohmann::json::parse(in)["cases"][0];
  const std::vector<TokenId> ids = about["ids"];
  const double likeness = Likeness(LastLogits(**engine, source, ids), LastLogits(**engine, path, ids));
  const quantize::TensorReport& up = report->tensors[UpOfLayer0(*report)];
  const double bits = 8 * static_cast<double>(up.bytes) / static_cast<double>(up.elements);
  RecordProperty("likeness", fmt::format("{:.4f}", likeness));
  EXPECT_GT(likeness, LeastLikeness(GetParam(), bits)) << bits << " bits a weight";
}

std::vector<std::string> MixNames() {
  std::vector<std::string> names;
  for (const quantize::Mix& mix : quantize::AllMixes()) names.emplace_back(mix.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(EveryMix, Quantized, testing::ValuesIn(MixNames()),
                         [](const testing::TestParamInfo<std::string>& mix) { return mix.param; });

}  // namespace
}  // namespace sluice
