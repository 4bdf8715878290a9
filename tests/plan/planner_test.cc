#include "plan/planner.h"

#include <gmock/gmock.h>

#include "base/units.h"

namespace sluice::plan {
namespace {

using kv::KvType;
using memory::Account;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A model with round numbers: 10 GiB of weights of which 9 are swept; KV of 1 MiB a token in f16; activations
// of 1 MiB for each token of a batch.
ModelFacts Model() {
  ModelFacts facts{
      .name = "toy", .parameters = 10'000'000'000, .context_length = 32768, .tensor_bytes = 10 * kGiB};
  facts.swept = {{formats::DType::kQ4_K, 9 * kGiB, 9'000'000'000}};
  facts.tokenizer_bytes = 16 * kMiB;
  facts.weight_bytes = [](const weights::StoreOptions& options) {
    weights::Footprint bytes;
    switch (options.residency) {
      case Residency::kResident:
        bytes.pinned_bytes = 10 * kGiB;
        break;
      case Residency::kPin:
        bytes.pinned_bytes = std::min(options.pinned_bytes, 9 * kGiB);
        bytes.streamed_bytes = 9 * kGiB - bytes.pinned_bytes;
        bytes.ring_bytes = bytes.streamed_bytes > 0 ? options.ring_bytes : 0;
        break;
      case Residency::kLru:
        bytes.ring_bytes = static_cast<uint64_t>(options.lru_blocks) * kGiB;
        bytes.streamed_bytes = 9 * kGiB;
        break;
      case Residency::kMmap:
        break;
    }
    return bytes;
  };
  facts.kv_bytes = [](const kv::Settings& kv) {
    const uint64_t k = kernels::KvRowBytes(kv.k_type, 64), v = kernels::KvRowBytes(kv.v_type, 64);
    return static_cast<uint64_t>(kv.context_length * kv.sequences) * (k + v) * 4096;
  };
  facts.activation_bytes = [](const kv::Settings& kv, int, runtime::Fusion) {
    return static_cast<uint64_t>(kv.batch) * kMiB;
  };
  return facts;
}

Request Budgeted(uint64_t budget) { return {.budget_bytes = budget}; }

struct LadderCase {
  const char* what;
  uint64_t budget_mib;
  Residency residency;
  int64_t context, batch;
  KvType k, v;
  size_t steps;
};

// Walks down all of the ladder as the budget shrinks.
TEST(PlannerTest, Ladder) {
  const uint64_t rest = 10 * 1024 + 16 + 64;  // MiB: all weights, tokenizer, unaccounted at most
  for (const LadderCase& c : std::vector<LadderCase>{
           {"everything fits", rest + 8192 + 512, Residency::kResident, 8192, 512, KvType::kF16, KvType::kF16,
            0},
           {"shorter context", rest + 4096 + 512, Residency::kResident, 4096, 512, KvType::kF16, KvType::kF16,
            1},
           {"not below 2048", rest + 2048 + 512, Residency::kResident, 2048, 512, KvType::kF16, KvType::kF16,
            1},
           {"int8", rest + 1100 + 512, Residency::kResident, 2048, 512, KvType::kQ8_0, KvType::kQ8_0, 2},
           {"int8 and int4", rest + 840 + 512, Residency::kResident, 2048, 512, KvType::kQ8_0, KvType::kQ4_0,
            2},
           {"int4", rest + 580 + 512, Residency::kResident, 2048, 512, KvType::kQ4_0, KvType::kQ4_0, 2},
           {"smaller batch", rest + 580 + 256, Residency::kResident, 2048, 256, KvType::kQ4_0, KvType::kQ4_0,
            3},
           {"streaming, and back at the top", rest + 580, Residency::kPin, 2048, 512, KvType::kF16,
            KvType::kF16, 2},
           {"streaming with little", 1024, Residency::kPin, 256, 256, KvType::kF16, KvType::kF16, 2},
       }) {
    const auto plan = MakePlan(Model(), Budgeted(c.budget_mib * kMiB));
    ASSERT_TRUE(plan) << c.what << ": " << plan.error().message;
    EXPECT_EQ(plan->store.residency, c.residency) << c.what;
    EXPECT_EQ(plan->kv.context_length, c.context) << c.what;
    EXPECT_EQ(plan->kv.k_type, c.k) << c.what;
    EXPECT_EQ(plan->kv.v_type, c.v) << c.what;
    if (c.residency == Residency::kResident) {
      EXPECT_EQ(plan->kv.batch, c.batch) << c.what;
    }
    EXPECT_EQ(plan->steps.size(), c.steps) << c.what << ": " << testing::PrintToString(plan->steps);
    EXPECT_LE(plan->total_bytes(), c.budget_mib * kMiB) << c.what;
  }
}

TEST(PlannerTest, WhatIsLeftOfTheBudgetIsPinned) {
  const auto plan =
      MakePlan(Model(), {.budget_bytes = 6 * kGiB, .context_length = 512, .residency = Residency::kPin});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->bytes(Account::kWeightsStream), 64 * kMiB);
  EXPECT_EQ(plan->bytes(Account::kWeightsPinned),
            6 * kGiB - (64 + 512 + 512 + 16) * kMiB - UnaccountedWithin(6 * kGiB));
  EXPECT_EQ(plan->streamed_bytes, 9 * kGiB - plan->bytes(Account::kWeightsPinned));
  EXPECT_LE(plan->total_bytes(), 6 * kGiB);
  EXPECT_GT(plan->total_bytes(), 6 * kGiB - kMiB);
  EXPECT_THAT(plan->steps, IsEmpty());
}

TEST(PlannerTest, TheFileStaysInThePageCacheWhereItHasRoomBesideTheRest) {
  using weights::PageCache;
  const auto page_cache = [](Request request) {
    const auto plan = MakePlan(Model(), request);
    EXPECT_TRUE(plan);
    return plan ? plan->store.page_cache : PageCache::kPassBy;
  };
  const auto tight = MakePlan(Model(), {.budget_bytes = 12 * kGiB, .context_length = 512});
  ASSERT_TRUE(tight);
  EXPECT_EQ(tight->store.residency, Residency::kResident);
  EXPECT_EQ(tight->store.page_cache, PageCache::kPassBy);
  const uint64_t roomy = tight->total_bytes() + Model().tensor_bytes + 64 * kMiB;
  const weights::StoreOptions leave = {.page_cache = PageCache::kLeave};
  EXPECT_EQ(page_cache({.budget_bytes = roomy, .context_length = 512, .store = leave}), PageCache::kLeave);
  EXPECT_EQ(page_cache({.budget_bytes = roomy - kGiB, .context_length = 512, .store = leave}),
            PageCache::kPassBy);
  EXPECT_EQ(page_cache(
                {.budget_bytes = roomy, .context_length = 512, .residency = Residency::kPin, .store = leave}),
            PageCache::kPassBy);
  EXPECT_EQ(page_cache({.budget_bytes = roomy, .context_length = 512}), PageCache::kPassBy);
}

// A budget that holds all that is swept streams nothing, and needs no ring.
TEST(PlannerTest, PinningEverythingStreamsNothing) {
  const auto plan =
      MakePlan(Model(), {.budget_bytes = 20 * kGiB, .context_length = 512, .residency = Residency::kPin});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->streamed_bytes, 0u);
  EXPECT_EQ(plan->bytes(Account::kWeightsStream), 0u);
}

TEST(PlannerTest, UnlimitedHoldsAll) {
  const auto plan = MakePlan(Model(), {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->store.residency, Residency::kResident);
  EXPECT_EQ(plan->kv.context_length, kDefaultContext);
}

TEST(PlannerTest, WhatOthersHoldIsCounted) {
  Request request = Budgeted(20 * kGiB);
  request.used_bytes = 5 * kGiB;
  request.reserve_bytes = kGiB;
  const auto plan = MakePlan(Model(), request);
  ASSERT_TRUE(plan);
  EXPECT_LT(plan->kv.context_length, kDefaultContext);
  EXPECT_LE(plan->total_bytes(), 20 * kGiB);
  EXPECT_GT(plan->total_bytes(), 16 * kGiB);
}

TEST(PlannerTest, TypedValuesAreKept) {
  const auto plan = MakePlan(Model(), {.budget_bytes = 8 * kGiB,
                                       .context_length = 5000,
                                       .batch = 100,
                                       .k_type = KvType::kF16,
                                       .v_type = KvType::kF16});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->kv.context_length, 5000);
  EXPECT_EQ(plan->kv.batch, 100);
  EXPECT_EQ(plan->kv.v_type, KvType::kF16);
  EXPECT_EQ(plan->store.residency, Residency::kPin);
}

// K was typed, so only V may lose bits.
TEST(PlannerTest, OneTypedTypeLeavesTheOtherFree) {
  const auto plan =
      MakePlan(Model(), {.budget_bytes = 5 * kGiB, .context_length = 7000, .k_type = KvType::kF16});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->kv.k_type, KvType::kF16);
  EXPECT_EQ(plan->kv.v_type, KvType::kQ4_0);
}

TEST(PlannerTest, RefusalsGiveNumbersAndWhatWouldFit) {
  Request typed{
      .budget_bytes = 2 * kGiB, .context_length = 10000, .k_type = KvType::kF16, .v_type = KvType::kF16};
  auto plan = MakePlan(Model(), typed);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kDoesNotFit);
  EXPECT_THAT(plan.error().message,
              AllOf(HasSubstr("10000 tokens"), HasSubstr("the budget is 2.00 GiB"), HasSubstr("kv 9.77 GiB"),
                    HasSubstr("it takes a budget of 9.9"), HasSubstr("or a context of 1856 tokens")));
  // What was named does fit.
  typed.context_length = 1856;
  EXPECT_TRUE(MakePlan(Model(), typed));

  plan = MakePlan(Model(), {.budget_bytes = 8 * kGiB, .residency = Residency::kResident});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message,
              AllOf(HasSubstr("weights.pinned 10.0 GiB"), HasSubstr("--residency pin")));

  EXPECT_FALSE(MakePlan(Model(), Budgeted(100 * kMiB)));
}

TEST(PlannerTest, StrictRefusesEveryStep) {
  Request request = Budgeted(12 * kGiB);
  ASSERT_TRUE(MakePlan(Model(), request));
  request.strict = true;
  const auto refused = MakePlan(Model(), request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDoesNotFit);
  EXPECT_THAT(refused.error().message, HasSubstr("without --strict: context 8192"));
  request.context_length = 1024;
  EXPECT_TRUE(MakePlan(Model(), request));
  // Streaming that was asked for is no step.
  request = Budgeted(10 * kGiB);
  request.strict = true;
  request.residency = Residency::kPin;
  const auto streamed = MakePlan(Model(), request);
  ASSERT_TRUE(streamed) << streamed.error().message;
  EXPECT_EQ(streamed->kv.context_length, kDefaultContext);
}

TEST(PlannerTest, RequestsThatMakeNoSense) {
  for (const Request& request : {Request{.context_length = -1}, Request{.context_length = INT64_MAX},
                                 Request{.batch = 0}, Request{.batch = -5}, Request{.sequences = 0}}) {
    const auto plan = MakePlan(Model(), request);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::kInvalidArgument);
  }
  ModelFacts learned = Model();
  learned.bounded_context = true;
  EXPECT_TRUE(MakePlan(learned, {.context_length = 32768}));
  EXPECT_FALSE(MakePlan(learned, {.context_length = 32769}));
}

TEST(PlannerTest, LargestContextIsTheLargest) {
  const ModelFacts facts = Model();
  Request request = Budgeted(14 * kGiB);
  for (const bool stream : {false, true}) {
    for (const KvType type : {KvType::kF16, KvType::kQ8_0, KvType::kQ4_0}) {
      const int64_t context = LargestContext(facts, request, type, type, stream);
      ASSERT_GT(context, 0);
      Request typed = request;
      typed.context_length = context;
      typed.batch = kDefaultBatch;
      typed.k_type = typed.v_type = type;
      typed.residency = stream ? Residency::kPin : Residency::kResident;
      EXPECT_TRUE(MakePlan(facts, typed)) << context;
      typed.context_length += kv::kPagePositions;
      EXPECT_FALSE(MakePlan(facts, typed)) << context;
    }
  }
  request.sequences = 4;
  EXPECT_LE(LargestContext(facts, request, KvType::kF16, KvType::kF16, true),
            LargestContext(facts, Budgeted(14 * kGiB), KvType::kF16, KvType::kF16, true) / 4);
  EXPECT_EQ(LargestContext(facts, Budgeted(kGiB), KvType::kF16, KvType::kF16, false), 0);
}

TEST(PlannerTest, MmapIsNotBounded) {
  const auto plan =
      MakePlan(Model(), {.budget_bytes = 4 * kGiB, .context_length = 512, .residency = Residency::kMmap});
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->bounded);
  EXPECT_EQ(plan->streamed_bytes, 9 * kGiB);
  EXPECT_THAT(Summary(*plan), HasSubstr("which no budget bounds"));
}

TEST(PlannerTest, SummaryNamesWhatMatters) {
  const auto plan = MakePlan(Model(), Budgeted(6 * kGiB));
  ASSERT_TRUE(plan);
  EXPECT_THAT(Summary(*plan),
              AllOf(HasSubstr("streamed for each token"), HasSubstr("KV f16"), HasSubstr("of 6.00 GiB")));
}

}  // namespace
}  // namespace sluice::plan
