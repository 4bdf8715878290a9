// Attention alone, measured: what is reported, not how fast it is.
#include "sluice/bench_attention.h"

#include "api/fixture.h"

namespace sluice {
namespace {

using whole::TinyLlama;

class BenchAttentionTest : public ApiTest {
 protected:
  Result<std::vector<AttentionReport>> Bench(const AttentionBenchOptions& options, bool go_on = true) {
    model_ = Open(TinyLlama());
    return BenchAttention(*engine_, *model_, options, [go_on] { return go_on; });
  }
  std::shared_ptr<const Model> model_;
};

TEST_F(BenchAttentionTest, ReportsEveryDepthAndPairOfTypes) {
  const auto reports = Bench({.depths = {70, 700}, .prompt_tokens = 9, .repetitions = 2, .roofs = false});
  ASSERT_TRUE(reports) << reports.error().message;
  ASSERT_EQ(reports->size(), 6u);
  const model::Config& config = model_->config();
  for (size_t i = 0; i < reports->size(); ++i) {
    const AttentionReport& report = (*reports)[i];
    SCOPED_TRACE(i);
    EXPECT_EQ(report.depth, i < 3 ? 70 : 700);
    EXPECT_EQ(report.left_out, "");
    uint64_t bytes = 0;
    for (const model::LayerConfig& layer : config.layers)
      bytes += static_cast<uint64_t>(report.depth * layer.n_kv_heads) *
               (kv::KvRowBytes(report.k_type, config.k_dim) + kv::KvRowBytes(report.v_type, config.v_dim));
    EXPECT_EQ(report.kv_bytes, bytes);
    EXPECT_EQ(report.scratch_bytes, reports->front().scratch_bytes) << "it grows with the depth";
    EXPECT_EQ(report.prompt_rows, 9);
    EXPECT_EQ(report.samples.size(), 2u);
    EXPECT_GT(report.seconds(), 0);
    EXPECT_GT(report.stored_ratio(), 0);
    EXPECT_GT(report.prompt_seconds(), 0);
    EXPECT_GT(report.prompt_stored_ratio(), 0);
    EXPECT_EQ(report.share_of_roof(), 0) << "without roofs";
  }
  EXPECT_GT((*reports)[3].score_bytes, (*reports)[0].score_bytes);
  EXPECT_EQ((*reports)[0].k_type, kv::KvType::kF16);
  EXPECT_EQ((*reports)[1].v_type, kv::KvType::kQ8_0);
  EXPECT_EQ((*reports)[2].v_type, kv::KvType::kQ4_0);
}

TEST_F(BenchAttentionTest, SaysWhatDoesNotFit) {
  engine_ = MakeEngine({.threads = 2, .memory_bytes = 64 << 20});
  const auto reports =
      Bench({.depths = {int64_t{1} << 22}, .prompt_tokens = 0, .repetitions = 1, .roofs = false});
  ASSERT_TRUE(reports) << reports.error().message;
  for (const AttentionReport& report : *reports) {
    EXPECT_THAT(report.left_out, testing::HasSubstr("MiB"));
    EXPECT_TRUE(report.samples.empty());
    EXPECT_EQ(report.seconds(), 0);
  }
}

TEST_F(BenchAttentionTest, RefusesWhatMakesNoSense) {
  for (const AttentionBenchOptions& options :
       {AttentionBenchOptions{.depths = {}}, AttentionBenchOptions{.depths = {0}},
        AttentionBenchOptions{.prompt_tokens = -1}, AttentionBenchOptions{.repetitions = 0}}) {
    const auto reports = Bench(options);
    ASSERT_FALSE(reports);
    EXPECT_EQ(reports.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST_F(BenchAttentionTest, StopsWhenAsked) {
  const auto reports = Bench({.depths = {64}, .repetitions = 1, .roofs = false}, false);
  ASSERT_FALSE(reports);
  EXPECT_EQ(reports.error().code, ErrorCode::kInterrupted);
}

}  // namespace
}  // namespace sluice
