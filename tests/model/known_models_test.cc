// Two small models with trained weights, against what their own makers' programs compute.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "model/runner.h"

namespace sluice::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json ReadJson(const fs::path& path) {
  std::ifstream in(path);
  return json::parse(in);
}

class Stories260KTest : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path folder = fs::path(SLUICE_REFERENCE_DIR) / "stories260K";
    if (!fs::exists(folder)) GTEST_SKIP() << "no reference vectors at " << folder;
    golden_ = ReadJson(folder / "golden.json");
    runner_ = Runner::Open(folder / "stories260K-f32.gguf");
    ASSERT_NE(runner_, nullptr);
    vocab_ = static_cast<size_t>(runner_->model().config().vocab_size);
  }

  json golden_;
  std::unique_ptr<Runner> runner_;
  size_t vocab_ = 0;
};

TEST_F(Stories260KTest, PromptIdsAndTheirLogits) {
  const std::vector<int> expected = golden_["prompt_ids"];
  const auto ids =
      runner_->model().tokenizer().Encode(golden_["prompt"].get<std::string>(), {.add_special = true});
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, expected);
  const std::vector<float> logits = runner_->Logits(*ids);
  for (size_t position = 0; position < ids->size(); ++position) {
    for (const json& top : golden_["prompt_top5"][position]) {
      EXPECT_NEAR(logits[position * vocab_ + top[0].get<size_t>()], top[1].get<double>(), 2e-4) << position;
    }
  }
}

TEST_F(Stories260KTest, GreedyStory) {
  const std::vector<int> expected = golden_["greedy_ids"];
  const size_t prompt = golden_["prompt_ids"].size();
  kv::Sequence sequence(runner_->cache());
  std::vector<int> ids(expected.begin(), expected.begin() + static_cast<ptrdiff_t>(prompt));
  std::vector<float> logits = runner_->Continue(sequence, ids);
  while (ids.size() < expected.size()) {
    ids.push_back(Argmax(std::span(logits).last(vocab_)));
    logits = runner_->Continue(sequence, std::vector<int>{ids.back()});
  }
  EXPECT_EQ(ids, expected);
  const std::span<const int> without_bos = std::span(ids).subspan(1);
  EXPECT_EQ(runner_->model().tokenizer().DecodeText(without_bos), golden_["greedy_text"].get<std::string>());
}

TEST_F(Stories260KTest, NegativeLogLikelihoods) {
  for (const auto& [name, about] : golden_["nll"].items()) {
    auto ids = runner_->model().tokenizer().Encode(about["text"].get<std::string>(), {.add_special = true});
    ASSERT_TRUE(ids);
    const size_t tokens = about["tokens"];
    ASSERT_GE(ids->size(), tokens) << name;
    ids->resize(tokens);
    const std::vector<float> logits = runner_->Logits(*ids);
    double sum = 0;
    for (size_t i = 0; i + 1 < tokens; ++i) {
      const std::span<const float> row(logits.data() + i * vocab_, vocab_);
      double total = 0;
      for (const float logit : row) total += std::exp(static_cast<double>(logit));
      sum += std::log(total) - static_cast<double>(row[static_cast<size_t>((*ids)[i + 1])]);
    }
    EXPECT_NEAR(sum / static_cast<double>(tokens - 1), about["mean_nll"].get<double>(), 2e-5) << name;
  }
}

// Decodes the base64 of a tensor in gpt-nano-sort's file of partial results.
std::vector<float> Tensor(const json& tensor) {
  const std::string text = tensor["data"];
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    group = group << 6 | static_cast<uint32_t>(alphabet.find(c));
    if ((bits += 6) >= 8) bytes += static_cast<char>(group >> (bits -= 8) & 0xff);
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

TEST(GptNanoSortTest, EveryActivation) {
  const fs::path folder = fs::path(SLUICE_REFERENCE_DIR) / "gpt-nano-sort";
  if (!fs::exists(folder)) GTEST_SKIP() << "no reference vectors at " << folder;
  const json partials = ReadJson(folder / "gpt-nano-sort-t0-partials.json");
  const auto runner = Runner::Open(folder / "gpt-nano-sort-f32.gguf",
                                   {.context_length = 11, .fusion = runtime::Fusion::kNone});
  ASSERT_NE(runner, nullptr);
  const size_t batch = partials["idx"]["shape"][0], length = partials["idx"]["shape"][1];
  const std::vector<float> idx = Tensor(partials["idx"]);
  ASSERT_EQ(idx.size(), batch * length);

  // Three sequences in one batch, as in the reference.
  std::map<std::string, std::vector<float>> seen;
  runner->forward().set_observer(
      [&](Stage stage, int layer, const float* rows, int64_t n_rows, int64_t width) {
        const auto keep = [&](const std::string& name) { seen[name].assign(rows, rows + n_rows * width); };
        if (stage == Stage::kEmbedding) keep("x");
        if (stage == Stage::kLayerOutput) keep(fmt::format("block{}", layer));
        if (stage == Stage::kOutputInput)
          seen["ln_f"].insert(seen["ln_f"].end(), rows, rows + n_rows * width);
        if (layer != 0) return;
        if (stage == Stage::kAttentionInput) keep("ln1");
        if (stage == Stage::kAttended) keep("y");
        if (stage == Stage::kAttentionOutput) keep("attnResid");
        if (stage == Stage::kFfnInput) keep("ln2");
        if (stage == Stage::kFfnActivated) keep("gelu");
        if (stage == Stage::kLayerOutput) keep("mlpResid");
      });
  std::vector<kv::Sequence> sequences;
  for (size_t b = 0; b < batch; ++b) sequences.emplace_back(runner->cache());
  std::vector<BatchRow> rows;
  for (size_t i = 0; i < idx.size(); ++i)
    rows.push_back({static_cast<int>(idx[i]), &sequences[i / length], true});
  std::vector<float>& logits = seen["lm_head"];
  ASSERT_TRUE(runner->forward().Run(rows, runner->cache(), [&](size_t, std::span<const float> row) {
    logits.insert(logits.end(), row.begin(), row.end());
  }));

  EXPECT_EQ(seen.size(), 12u);
  for (const auto& [name, values] : seen) {
    const std::vector<float> expected = Tensor(partials[name]);
    ASSERT_EQ(values.size(), expected.size()) << name;
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[i], 1e-4) << name << " element " << i;
  }
}

}  // namespace
}  // namespace sluice::model
