// What is measured of an answer.
#include "sluice/stats.h"

#include "api/sessions.h"
#include "plan/probe.h"
#include "sluice/plan.h"

namespace sluice {
namespace {

using memory::Account;
using whole::TinyLlama;

class StatsTest : public TinySessions {};

TEST_F(StatsTest, AnAnswerSaysWhatItTook) {
  model_ = Open(TinyLlama());
  const auto conversation = Converse(model_);
  const auto answer =
      conversation->CompleteIds(SomeIds(20), {.max_tokens = 5, .ignore_end_of_turn = true}, {});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->reading.tokens, 20);
  EXPECT_EQ(answer->reading.passes, 1);
  EXPECT_EQ(answer->answering.passes, 4) << "the first token comes from the prompt's own pass";
  EXPECT_EQ(answer->answering.tokens, 4);
  EXPECT_GT(answer->answering.seconds, 0);
  EXPECT_TRUE(answer->reading.stall_seconds.has_value());
  const double weights = static_cast<double>(model_->parts().weights().bytes_per_token);
  EXPECT_GT(answer->answering.memory_bytes, 4 * weights);
  EXPECT_LT(answer->answering.memory_bytes,
            4 * (weights + static_cast<double>(conversation->session().SeenBytes(24))));

  const auto again = conversation->CompleteIds(SomeIds(20), {.max_tokens = 1}, {});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->answering.passes, 0);
  const Stats stats = GatherStats(*engine_, *model_, again->reading, again->answering);
  EXPECT_EQ(&stats.last_work(), &stats.reading);
}

TEST_F(StatsTest, TheLedgerStandsBesideThePlan) {
  model_ = Open(TinyLlama());
  const auto conversation = Converse(model_);
  const Stats stats = GatherStats(*engine_, *model_, {}, {});
  for (const Account account :
       {Account::kWeightsPinned, Account::kKv, Account::kActivations, Account::kTokenizer}) {
    const auto i = static_cast<size_t>(account);
    EXPECT_GT(stats.planned[i], 0u) << memory::AccountName(account);
    EXPECT_EQ(stats.ledger.used_bytes[i], stats.planned[i]) << memory::AccountName(account);
  }
  EXPECT_EQ(stats.ledger.used_bytes[static_cast<size_t>(Account::kReserve)], 0u);
  ASSERT_TRUE(stats.process.rss_bytes && stats.unaccounted_bytes());
  EXPECT_EQ(*stats.unaccounted_bytes() + static_cast<int64_t>(stats.ledger.total_bytes()),
            static_cast<int64_t>(*stats.process.rss_bytes));
  EXPECT_FALSE(FindBound(stats, std::nullopt).known());
}

// Only the kernel knows what it reads of a mapped file, and nobody how long it was waited for.
TEST_F(StatsTest, MappedWeightsHaveNoStalls) {
  auto opened = TryOpen(TinyLlama(), {.residency = weights::Residency::kMmap});
  ASSERT_TRUE(opened);
  const auto conversation = Converse(*opened);
  const auto answer =
      conversation->CompleteIds(SomeIds(20), {.max_tokens = 3, .ignore_end_of_turn = true}, {});
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->answering.stall_seconds);
  const Stats stats = GatherStats(*engine_, **opened, answer->reading, answer->answering);
  const plan::Bound bound = FindBound(stats, 1e12);
  EXPECT_FALSE(bound.storage);
  EXPECT_TRUE(bound.memory);
  EXPECT_FALSE(bound.compute);
}

TEST_F(StatsTest, WhatPlanMeasuredOfThisDeviceIsFound) {
  EXPECT_FALSE(MeasuredDevice(*engine_, folder_.path()));
  const std::string name = fmt::format("device-{}.json", plan::Fingerprint(engine_->context()));
  folder_.Write(name, plan::ToJson({.name = "here", .threads = 1, .memory_bytes_per_second = 2e10}));
  const auto device = MeasuredDevice(*engine_, folder_.path());
  ASSERT_TRUE(device);
  EXPECT_EQ(device->memory_bytes_per_second, 2e10);
  folder_.Write(name, "{");
  EXPECT_FALSE(MeasuredDevice(*engine_, folder_.path()));
}

TEST_F(StatsTest, WorksAddUpAsFarAsTheyAreKnown) {
  WorkFigures sum;
  sum += {.tokens = 2,
          .passes = 2,
          .seconds = 1,
          .bytes_read = 10,
          .stall_seconds = 0.5,
          .activity = {.minor_faults = 7}};
  sum += {.tokens = 1,
          .passes = 1,
          .seconds = 2,
          .bytes_read = 5,
          .activity = {.minor_faults = 1, .major_faults = 1}};
  EXPECT_EQ(sum.tokens, 3);
  EXPECT_EQ(sum.bytes_read, 15u);
  EXPECT_EQ(sum.bytes_read_per_token(), 5.0);
  EXPECT_EQ(sum.stall_seconds, std::nullopt);
  EXPECT_EQ(sum.stall_seconds_per_token(), std::nullopt);
  EXPECT_EQ(sum.activity.minor_faults, 8u);
  EXPECT_EQ(sum.activity.major_faults, std::nullopt);
}

TEST_F(StatsTest, WhatATokenSeesGrowsToTheWindow) {
  model_ = Open(TinyLlama());
  const auto session =
      Make({.kv = {.context_length = 64, .batch = 8, .overflow = kv::Overflow::kWindow, .sinks = 4}});
  EXPECT_EQ(session->SeenBytes(0), 0u);
  EXPECT_EQ(session->SeenBytes(10) * 2, session->SeenBytes(20));
  EXPECT_EQ(session->SeenBytes(64), session->SeenBytes(5000));
}

}  // namespace
}  // namespace sluice
