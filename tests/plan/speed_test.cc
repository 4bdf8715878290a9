#include "plan/speed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/units.h"

namespace sluice::plan {
namespace {

// 4 GB of weights in two types and 1 GB/s of storage: times are whole seconds.
ModelFacts Facts() {
  ModelFacts facts;
  facts.swept = {{formats::DType::kQ4_K, 3'000'000'000, 6'000'000'000},
                 {formats::DType::kQ6_K, 1'000'000'000, 1'000'000'000}};
  facts.attention_multiplications = 1'000'000;
  return facts;
}

DeviceProfile Device() {
  DeviceProfile device;
  device.types = {{formats::DType::kQ4_K, 3e9 / kDecodeShare, 6e11},
                  {formats::DType::kQ6_K, 1e9 / kDecodeShare, 1e11}};
  device.other_attention.multiplications_per_second = 1e9;
  // 1 GB/s to a ring.
  device.storage = {{2 * kMiB, 8, io::IoBackend::kAuto, 1e9 / kRingShare}};
  return device;
}

// Of all weights, at the speed of that device.
constexpr double kLoadingSeconds = 4 * kRingShare / kFreshMemoryShare;

Plan PlanOf(uint64_t streamed, int64_t context = 4096) {
  Plan plan;
  plan.streamed_bytes = streamed;
  plan.store.residency = Residency::kPin;
  plan.kv = {.context_length = context, .batch = 500};
  return plan;
}

TEST(SpeedTest, InMemoryIsBoundByComputing) {
  const Speed speed = EstimateSpeed(Facts(), PlanOf(0), Device());
  // 1 s + 1 s of weights, 2000 positions of 1 ms.
  EXPECT_DOUBLE_EQ(speed.compute_seconds, 4);
  EXPECT_DOUBLE_EQ(speed.decode_tokens_per_second, 0.25);
  EXPECT_FALSE(speed.bound_by_storage());
  EXPECT_FALSE(speed.fluent());
  EXPECT_DOUBLE_EQ(speed.answer_seconds, 200 * 4);
  // Four batches of 500 at 20 ms a token, and attention over all pairs: 2000² / 2 ms.
  EXPECT_DOUBLE_EQ(speed.first_token_seconds, kLoadingSeconds + 40 + 2000);
  EXPECT_DOUBLE_EQ(speed.prefill_tokens_per_second, 2000 / 2040.0);
}

TEST(SpeedTest, StreamingIsBoundByTheSlowerOfTheTwo) {
  const Speed slow = EstimateSpeed(Facts(), PlanOf(8'000'000'000), Device());
  EXPECT_TRUE(slow.bound_by_storage());
  EXPECT_DOUBLE_EQ(slow.decode_tokens_per_second, 1 / 8.0);
  const Speed hidden = EstimateSpeed(Facts(), PlanOf(1'000'000'000), Device());
  EXPECT_FALSE(hidden.bound_by_storage());
  EXPECT_DOUBLE_EQ(hidden.decode_tokens_per_second, 0.25);
}

TEST(SpeedTest, AShortContextHoldsAShorterPrompt) {
  const Speed speed = EstimateSpeed(Facts(), PlanOf(0, 500), Device());
  EXPECT_DOUBLE_EQ(speed.first_token_seconds, kLoadingSeconds + 10 + 125);
}

TEST(SpeedTest, TheFirstPassLoadsTheWeights) {
  DeviceProfile device = Device();
  device.storage[0].bytes_per_second = 1e8 / kFreshMemoryShare;
  // 40 s of reading, 10 s of computing and 125 of attention; a second batch of 500 waits for nothing.
  const Speed speed = EstimateSpeed(Facts(), PlanOf(0, 500), device);
  EXPECT_DOUBLE_EQ(speed.first_token_seconds, 40 + 10 + 125);
  ModelFacts facts = Facts();
  facts.attention_multiplications = 0;
  EXPECT_DOUBLE_EQ(EstimateSpeed(facts, PlanOf(0, 1000), device).first_token_seconds, 40 + 10 + 10);
  EXPECT_DOUBLE_EQ(EstimateSpeed(facts, PlanOf(0, 1000), device).prefill_tokens_per_second, 50);
}

TEST(SpeedTest, TheFirstPassLoadsBesideComputingWhereWeightsStream) {
  DeviceProfile device = Device();
  ModelFacts facts = Facts();
  facts.attention_multiplications = 0;
  for (const double loading : {5.0, 40.0}) {  // beside 10 s of computing
    device.storage[0].bytes_per_second =
        static_cast<double>(facts.swept_bytes()) / loading / kFreshMemoryShare;
    const Speed speed = EstimateSpeed(facts, PlanOf(1, 500), device);
    EXPECT_DOUBLE_EQ(speed.first_token_seconds, std::max(loading, 10.0));
  }
}

TEST(SpeedTest, ACacheOfBlocksIsSlowerThanARing) {
  Plan plan = PlanOf(8'000'000'000);
  plan.store.residency = Residency::kLru;
  EXPECT_DOUBLE_EQ(EstimateSpeed(Facts(), plan, Device()).storage_seconds, 8 * kRingShare / kFreshMemoryShare);
}

TEST(SpeedTest, StorageIsAsFastAsTheStoreReadsIt) {
  DeviceProfile device = Device();
  device.storage.push_back({512 * kKiB, 4, io::IoBackend::kUring, 5e8 / kRingShare});
  Plan plan = PlanOf(8'000'000'000);
  EXPECT_DOUBLE_EQ(EstimateSpeed(Facts(), plan, device).storage_seconds, 8);
  plan.store.read_bytes = 512 * kKiB;
  plan.store.depth = 4;
  EXPECT_DOUBLE_EQ(EstimateSpeed(Facts(), plan, device).storage_seconds, 16);
}

TEST(SpeedTest, NothingIsSaidWithoutFigures) {
  DeviceProfile device = Device();
  device.storage.clear();
  EXPECT_GT(EstimateSpeed(Facts(), PlanOf(0), device).decode_tokens_per_second, 0);
  EXPECT_EQ(EstimateSpeed(Facts(), PlanOf(1), device).decode_tokens_per_second, 0);
  EXPECT_EQ(EstimateSpeed(Facts(), PlanOf(0), DeviceProfile()).decode_tokens_per_second, 0);
}

}  // namespace
}  // namespace sluice::plan
