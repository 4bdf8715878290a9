// Fused operators change no bit of the logits.
#include <gtest/gtest.h>

#include <filesystem>

#include "model/golden_files.h"
#include "model/runner.h"

namespace sluice::model {
namespace {

namespace fs = std::filesystem;
using runtime::Fusion;
using runtime::kFusionLevels;

std::vector<int> SomeIds(int count) {
  std::vector<int> ids;
  for (int i = 0; i < count; ++i) ids.push_back(1 + i * 7 % 23);
  return ids;
}

class FusionTest : public testing::TestWithParam<GoldenFile> {};

TEST_P(FusionTest, EveryLevelGivesTheSameBits) {
  std::string missing;
  const std::string path = GetParam().Path(&missing);
  if (path.empty()) GTEST_SKIP() << missing;
  const std::vector<int> ids = SomeIds(75);
  for (const auto& [k_type, v_type] :
       {std::pair{kv::KvType::kF16, kv::KvType::kF16}, {kv::KvType::kQ8_0, kv::KvType::kQ4_0}}) {
    const auto fused = Runner::Open(path, {.k_type = k_type, .v_type = v_type});
    ASSERT_NE(fused, nullptr);
    const std::vector<float> expected = fused->Logits(ids);
    for (const Fusion fusion : kFusionLevels) {
      SCOPED_TRACE(runtime::FusionName(fusion));
      for (const int threads : {1, 3}) {
        const auto runner =
            Runner::Open(path, {.threads = threads, .k_type = k_type, .v_type = v_type, .fusion = fusion});
        ASSERT_NE(runner, nullptr);
        for (const int64_t chunk : {1, 20, 75}) EXPECT_EQ(runner->Logits(ids, chunk), expected) << chunk;
      }
    }
  }
}

TEST_P(FusionTest, WeightsMayBeStreamed) {
  std::string missing;
  const std::string path = GetParam().Path(&missing);
  if (path.empty()) GTEST_SKIP() << missing;
  const std::vector<int> ids = SomeIds(20);
  const std::vector<float> expected = Runner::Open(path)->Logits(ids);
  const weights::StoreOptions ring{.residency = weights::Residency::kPin,
                                   .pinned_bytes = 0,
                                   .ring_bytes = 256 * 1024,
                                   .slab_bytes = 24 * 1024,
                                   .depth = 3};
  for (const Fusion fusion : kFusionLevels) {
    const auto runner = Runner::Open(path, {.threads = 3, .fusion = fusion, .store = ring});
    ASSERT_NE(runner, nullptr);
    EXPECT_EQ(runner->Logits(ids, 7), expected) << runtime::FusionName(fusion);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, FusionTest,
                         testing::Values(GoldenFile{"synth/Q4_K/256"}, GoldenFile{"synth/Q8_0/32"},
                                         GoldenFile{"synth/F16/32"}),
                         [](const auto& test) { return test.param.TestName(); });

// Families whose blocks differ: parallel branches, norms behind them, windows, ALiBi, biases, no gate.
TEST(FusionFamiliesTest, EveryLevelGivesTheSameBits) {
  const fs::path folder = fs::path(SLUICE_REFERENCE_DIR) / "oracle" / "models";
  if (!fs::exists(folder)) GTEST_SKIP() << "no reference models at " << folder;
  const std::vector<int> ids = SomeIds(40);
  int families = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const auto header = Model::OpenHeader(entry.path(), {});
    if (!header) continue;  // no recipe
    SCOPED_TRACE(entry.path().filename());
    const auto fused = Runner::Open(entry.path(), {.context_length = 64});
    const auto apart = Runner::Open(entry.path(), {.context_length = 64, .fusion = Fusion::kNone});
    ASSERT_TRUE(fused != nullptr && apart != nullptr);
    EXPECT_EQ(apart->Logits(ids), fused->Logits(ids));
    ++families;
  }
  EXPECT_GE(families, 20);
}

// A matrix of scores for a whole window that has moved on, of which a query sees two stretches.
TEST(FusionWindowTest, EveryLevelGivesTheSameBits) {
  std::string missing;
  const std::string path = GoldenFile{"synth/Q4_K/256"}.Path(&missing);
  for (const kv::Overflow overflow : {kv::Overflow::kWindow, kv::Overflow::kHeavy}) {
    std::vector<float> expected;
    for (const Fusion fusion : {Fusion::kAll, Fusion::kNone}) {
      const auto runner = Runner::Open(
          path, {.context_length = 256, .batch = 64, .sequences = 1, .fusion = fusion, .overflow = overflow});
      ASSERT_NE(runner, nullptr);
      const std::vector<float> logits = runner->Logits(SomeIds(900), 64);
      if (expected.empty()) expected = logits;
      EXPECT_EQ(logits, expected);
    }
  }
}

}  // namespace
}  // namespace sluice::model
