// Logits against those of an independent engine: every architecture with f32 weights, and the quantised files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/runner.h"

namespace sluice::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path Oracle() { return fs::path(SLUICE_REFERENCE_DIR) / "oracle"; }

json ReadJson(const fs::path& path) {
  std::ifstream in(path);
  return json::parse(in);
}

std::vector<float> ReadFloats(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<float> values(fs::file_size(path) / sizeof(float));
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  return values;
}

// The models whose architecture has a recipe (mixtures and recurrent models do not yet).
std::vector<std::string> SupportedModels() {
  std::vector<std::string> names;
  if (!fs::exists(Oracle())) return names;
  for (const auto& entry : fs::directory_iterator(Oracle() / "models")) {
    if (entry.path().extension() != ".json" || entry.path().stem() == "index") continue;
    const json about = ReadJson(entry.path());
    const bool experts = about["hparams"].contains(about["arch"].get<std::string>() + ".expert_count");
    if (FindRecipe(about["arch"].get<std::string>()) != nullptr && !experts) names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class OracleTest : public testing::TestWithParam<std::string> {};

TEST_P(OracleTest, LogitsAndGreedyIdsMatch) {
  const json about = ReadJson(Oracle() / "models" / (GetParam() + ".json"));
  for (const json& run : about["runs"]) {
    const auto runner = Runner::Open(Oracle() / about["file"].get<std::string>(),
                                     {.context_length = run["n_ctx"].get<int64_t>()});
    ASSERT_NE(runner, nullptr);
    const std::vector<int> ids = run["ids"];
    const std::vector<float> expected = ReadFloats(Oracle() / run["logits"].get<std::string>());
    kv::Sequence sequence(runner->cache());
    const std::vector<float> logits = runner->Continue(sequence, ids);
    const size_t vocab = static_cast<size_t>(runner->model().config().vocab_size);
    const bool s300 = run["seq"] == "s300";
    double worst = 0;
    for (size_t i = 0; i < run["shape"][0].get<size_t>(); ++i) {
      const size_t position = run["positions"] == "all" ? i : run["positions"][i].get<size_t>();
      for (size_t c = 0; c < vocab; ++c)
        worst = std::max<double>(worst, std::abs(logits[position * vocab + c] - expected[i * vocab + c]));
    }
    EXPECT_LE(worst, s300 ? 1e-3 : 2e-4) << GetParam() << " " << run["seq"];

    // Greedy continuation, where the reference's own margin is clear of our distance from it.
    if (run["greedy_min_margin"].get<double>() < 4 * worst || s300) continue;
    std::vector<int> greedy;
    int next = Argmax(std::span(logits).last(vocab));
    for (const int expected_id : run["greedy32"].get<std::vector<int>>()) {
      greedy.push_back(next);
      if (next != expected_id) break;
      next = Argmax(runner->Continue(sequence, std::vector<int>{next}));
    }
    EXPECT_EQ(greedy, run["greedy32"].get<std::vector<int>>()) << GetParam() << " " << run["seq"];
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OracleTest, testing::ValuesIn(SupportedModels()), [](const auto& test) {
  std::string name = test.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OracleTest);

TEST(QuantOracleTest, QuantisedFilesAreWithinTheirTypesNoise) {
  const fs::path index = Oracle() / "quant/index.json";
  if (!fs::exists(index)) GTEST_SKIP() << "no reference vectors at " << index;
  int checked = 0;
  for (const json& about : ReadJson(index)) {
    const std::string arch = about["arch"];
    if (FindRecipe(arch) == nullptr) continue;
    const std::string file = about["file"];
    SCOPED_TRACE(file);
    const auto runner = Runner::Open(Oracle() / file);
    ASSERT_NE(runner, nullptr);
    const std::vector<int> ids = about["ids"];
    const std::vector<float> logits = runner->Logits(ids);
    const std::vector<float> expected = ReadFloats(Oracle() / about["logits_exact"].get<std::string>());
    ASSERT_EQ(logits.size(), expected.size());
    double sum = 0;
    for (size_t i = 0; i < logits.size(); ++i) sum += std::pow(static_cast<double>(logits[i]) - expected[i], 2);
    const double rms = std::sqrt(sum / static_cast<double>(logits.size()));
    EXPECT_LE(rms, 1.25 * about["native_vs_exact_rms"].get<double>() + 1e-5);
    ++checked;
  }
  EXPECT_GT(checked, 25);
}

}  // namespace
}  // namespace sluice::model
