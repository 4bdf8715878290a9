#include "memory/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "base/units.h"

namespace sluice::memory {
namespace {

using testing::HasSubstr;

TEST(LedgerTest, KeepsAccounts) {
  Ledger ledger(1000);
  ASSERT_TRUE(ledger.Reserve(Account::kKv, 300));
  ASSERT_TRUE(ledger.Reserve(Account::kWeightsPinned, 500));
  ASSERT_TRUE(ledger.Reserve(Account::kKv, 100));
  ledger.Release(Account::kKv, 50);
  const LedgerSnapshot snapshot = ledger.Snapshot();
  EXPECT_EQ(snapshot.used(Account::kKv), 350u);
  EXPECT_EQ(snapshot.used(Account::kWeightsPinned), 500u);
  EXPECT_EQ(snapshot.used(Account::kActivations), 0u);
  EXPECT_EQ(snapshot.total_bytes(), 850u);
  EXPECT_EQ(snapshot.available_bytes(), 150u);
}

TEST(LedgerTest, TheBudgetCanBeFilledAndNotPassed) {
  Ledger ledger(1000);
  ASSERT_TRUE(ledger.Reserve(Account::kIo, 1000));
  EXPECT_TRUE(ledger.Reserve(Account::kIo, 0));
  EXPECT_EQ(ledger.Reserve(Account::kServer, 1).error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(ledger.Reserve(Account::kServer, UINT64_MAX).error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(ledger.Snapshot().total_bytes(), 1000u);
  ledger.Release(Account::kIo, 1);
  EXPECT_TRUE(ledger.Reserve(Account::kServer, 1));
}

TEST(LedgerTest, ARefusalHasTheNumbers) {
  Ledger ledger(8 * kGiB);
  ASSERT_TRUE(ledger.Reserve(Account::kTokenizer, 16 * kMiB));
  ASSERT_TRUE(ledger.Reserve(Account::kActivations, 256 * kMiB));
  ASSERT_TRUE(ledger.Reserve(Account::kWeightsPinned, 6 * kGiB));
  ASSERT_TRUE(ledger.Reserve(Account::kIo, 1 * kMiB));
  const Status status = ledger.Reserve(Account::kKv, 3 * kGiB);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("kv needs 3.00 GiB"));
  EXPECT_THAT(status.error().message, HasSubstr("left of the budget of 8.00 GiB"));
  EXPECT_THAT(status.error().message,
              HasSubstr("weights.pinned 6.00 GiB, activations 256 MiB, tokenizer 16.0 MiB)"));
}

TEST(LedgerTest, WithoutABudgetNothingIsRefused) {
  Ledger ledger(Ledger::kUnlimited);
  EXPECT_TRUE(ledger.Reserve(Account::kWeightsPinned, uint64_t{1} << 62));
  EXPECT_TRUE(ledger.Reserve(Account::kKv, 5));
  EXPECT_EQ(ledger.Snapshot().used(Account::kKv), 5u);
}

TEST(LedgerTest, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kAccountCount; ++i) names.insert(AccountName(static_cast<Account>(i)));
  EXPECT_EQ(names.size(), kAccountCount);
  EXPECT_EQ(AccountName(Account::kWeightsExperts), "weights.experts");
  EXPECT_EQ(AccountName(Account::kReserve), "reserve");
}

TEST(LedgerTest, ThreadsTogetherDoNotPassTheBudget) {
  Ledger ledger(100);
  std::vector<int> granted(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < granted.size(); ++t) {
    threads.emplace_back([&ledger, count = &granted[t]] {
      for (int i = 0; i < 100; ++i) *count += ledger.Reserve(Account::kServer, 1).has_value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted[0] + granted[1] + granted[2] + granted[3], 100);
  EXPECT_EQ(ledger.Snapshot().available_bytes(), 0u);
}

TEST(LedgerDeathTest, ReleasingWhatWasNotReservedIsABug) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Ledger ledger(100);
  EXPECT_DEATH(ledger.Release(Account::kKv, 1), "check failed");
}

}  // namespace
}  // namespace sluice::memory
