// The steps that a pass tells of: all of its time, in order, and nothing of it changes a bit.
#include <gtest/gtest.h>

#include <map>

#include "model/golden_files.h"
#include "model/runner.h"
#include "runtime/tracer.h"

namespace sluice::model {
namespace {

struct Step {
  std::string name;
  int layer;
  double start, end;
};

class Recorder final : public runtime::Tracer {
 public:
  void OnStep(std::string_view step, int layer, double start, double end) override {
    steps.push_back({std::string(step), layer, start, end});
  }
  void OnPass(int64_t n_rows, double start, double end) override {
    rows.push_back(n_rows);
    pass_start = start;
    pass_end = end;
  }

  std::vector<Step> steps;
  std::vector<int64_t> rows;
  double pass_start = 0, pass_end = 0;
};

TEST(TracerTest, IsToldOfEveryStepInOrder) {
  std::string missing;
  const std::string path = GoldenFile{"synth/Q8_0/32"}.Path(&missing);
  if (path.empty()) GTEST_SKIP() << missing;
  const auto runner = Runner::Open(path);
  ASSERT_NE(runner, nullptr);
  const std::vector<int> ids{1, 5, 3, 9};
  const std::vector<float> expected = runner->Logits(ids);

  Recorder recorder;
  runner->forward().set_tracer(&recorder);
  EXPECT_EQ(runner->Logits(ids), expected);
  EXPECT_EQ(recorder.rows, std::vector<int64_t>{4});
  std::map<std::string, int> counts;
  double before = recorder.pass_start;
  int layer = -1;
  for (const Step& step : recorder.steps) {
    ++counts[step.name];
    EXPECT_GE(step.start, before) << step.name;
    EXPECT_GE(step.end, step.start) << step.name;
    before = step.end;
    if (step.layer >= 0) {
      EXPECT_GE(step.layer, layer);
      layer = step.layer;
    }
  }
  EXPECT_GE(recorder.pass_end, before);
  const int layers = static_cast<int>(runner->model().config().layers.size());
  EXPECT_EQ(layer, layers - 1);
  for (const char* name : {"qkv", "heads", "attention", "attention output", "gate and up", "down"})
    EXPECT_EQ(counts[name], layers) << name;
  EXPECT_EQ(counts["norm"], 2 * layers);
  for (const char* name : {"embedding", "output norm", "logits"}) EXPECT_EQ(counts[name], 1) << name;

  runner->forward().set_tracer(nullptr);
  const size_t told = recorder.steps.size();
  EXPECT_EQ(runner->Logits(ids), expected);
  EXPECT_EQ(recorder.steps.size(), told);
}

TEST(TracerTest, TheShareOfAPassGrowsToItsEnd) {
  std::string missing;
  const std::string path = GoldenFile{"synth/Q8_0/32"}.Path(&missing);
  if (path.empty()) GTEST_SKIP() << missing;
  const auto runner = Runner::Open(path, {.threads = 1});
  ASSERT_NE(runner, nullptr);
  kv::Sequence sequence(runner->cache());
  const BatchRow row{1, &sequence, true};
  std::vector<double> shares;
  ASSERT_TRUE(runner->forward().Run({&row, 1}, runner->cache(), [](size_t, std::span<const float>) {}, [&] {
    shares.push_back(runner->forward().pass_share());
    return true;
  }));
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  EXPECT_EQ(shares.front(), 0);
  EXPECT_EQ(shares.back(), 1);
}

}  // namespace
}  // namespace sluice::model
