#include "memory/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "platform/memory_info.h"

namespace sluice::memory {
namespace {

uint64_t Used(const Ledger& ledger) { return ledger.Snapshot().used(Account::kActivations); }

TEST(ArenaTest, IsChargedWhileItLives) {
  Ledger ledger(1 * kMiB);
  {
    auto arena = Arena::Create(10000, Account::kActivations, ledger);
    ASSERT_TRUE(arena) << arena.error().message;
    EXPECT_EQ(arena->size(), 12288u);  // whole pages
    EXPECT_EQ(Used(ledger), 12288u);
  }
  EXPECT_EQ(Used(ledger), 0u);
}

TEST(ArenaTest, MovesCarryTheCharge) {
  Ledger ledger(1 * kMiB);
  Arena first = *Arena::Create(4096, Account::kActivations, ledger);
  const auto piece = first.Allocate(100);
  Arena second = std::move(first);
  EXPECT_EQ(second.bytes().data(), piece.data());
  EXPECT_EQ(second.used(), 100u);
  EXPECT_EQ(Used(ledger), 4096u);
  second = *Arena::Create(8192, Account::kActivations, ledger);
  EXPECT_EQ(Used(ledger), 8192u);
  second = Arena();
  EXPECT_EQ(Used(ledger), 0u);
}

TEST(ArenaTest, PiecesAreAlignedZeroedAndApart) {
  Ledger ledger(Ledger::kUnlimited);
  for (const auto pages : {platform::PageSize::kBase, platform::PageSize::kHuge}) {
    Arena arena = *Arena::Create(64 * kKiB, Account::kKv, ledger, {.page_size = pages, .touch = true});
    const auto a = arena.Allocate(1);
    const auto b = arena.Allocate(100);
    const auto c = arena.Allocate(5000, kPageBytes);
    const auto d = arena.AllocateArray<float>(17);
    EXPECT_EQ(b.data() - a.data(), 64);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(c.data()) % kPageBytes, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(d.data()) % kCacheLineBytes, 0u);
    EXPECT_EQ(d.size(), 17u);
    EXPECT_GE(reinterpret_cast<std::byte*>(d.data()), c.data() + c.size());
    EXPECT_TRUE(std::ranges::all_of(arena.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
    std::ranges::fill(c, std::byte{1});
    EXPECT_EQ(d[0], 0.0f);
  }
}

TEST(ArenaTest, CanBeFilledToTheLastByte) {
  Ledger ledger(Ledger::kUnlimited);
  Arena arena = *Arena::Create(8192, Account::kKv, ledger);
  EXPECT_EQ(arena.Allocate(8192).size(), 8192u);
  EXPECT_EQ(arena.Allocate(0).size(), 0u);
  EXPECT_EQ(arena.used(), arena.size());
}

TEST(ArenaTest, ARefusalLeavesTheLedgerAsItWas) {
  Ledger small(4096);
  EXPECT_EQ(Arena::Create(4097, Account::kActivations, small).error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(Used(small), 0u);
  // In the budget, but not to be had from the system.
  Ledger ledger(Ledger::kUnlimited);
  const auto arena = Arena::Create(uint64_t{1} << 60, Account::kActivations, ledger);
  ASSERT_FALSE(arena);
  EXPECT_EQ(arena.error().code, ErrorCode::kDoesNotFit);
  EXPECT_NE(arena.error().message.find("activations"), std::string::npos);
  EXPECT_EQ(Used(ledger), 0u);
  EXPECT_EQ(Arena::Create(UINT64_MAX, Account::kActivations, ledger).error().code, ErrorCode::kDoesNotFit);
}

TEST(ArenaTest, TouchedMemoryIsThere) {
  Ledger ledger(Ledger::kUnlimited);
  const uint64_t before = platform::ReadProcessMemory().rss_bytes.value_or(0);
  const Arena arena = *Arena::Create(16 * kMiB, Account::kKv, ledger, {.touch = true});
  EXPECT_GE(platform::ReadProcessMemory().rss_bytes, before + 15 * kMiB);
}

TEST(ArenaTest, EmptyIsFree) {
  Ledger ledger(0);
  auto arena = Arena::Create(0, Account::kKv, ledger);
  ASSERT_TRUE(arena);
  EXPECT_EQ(arena->size(), 0u);
  EXPECT_EQ(arena->Allocate(0).size(), 0u);
}

TEST(ArenaDeathTest, TakingMoreThanWasPlannedIsABug) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Ledger ledger(Ledger::kUnlimited);
  Arena arena = *Arena::Create(4096, Account::kKv, ledger);
  static_cast<void>(arena.Allocate(4000));
  EXPECT_DEATH(arena.Allocate(100), "check failed");
  EXPECT_DEATH(arena.Allocate(SIZE_MAX), "check failed");
}

}  // namespace
}  // namespace sluice::memory
