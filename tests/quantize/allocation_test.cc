#include "quantize/allocation.h"

#include <gmock/gmock.h>

#include <random>

namespace sluice::quantize {
namespace {

// The least damage that any choice within the budget has; infinity when there is none.
double LeastByTrying(const std::vector<AllocationItem>& items, uint64_t budget, size_t from = 0) {
  if (from == items.size()) return 0;
  double least = INFINITY;
  for (const AllocationOption& option : items[from]) {
    if (option.bytes > budget) continue;
    least = std::min(least, option.damage + LeastByTrying(items, budget - option.bytes, from + 1));
  }
  return least;
}

std::vector<AllocationItem> RandomItems(std::mt19937& random, size_t count) {
  std::vector<AllocationItem> items(count);
  for (AllocationItem& item : items) {
    for (size_t o = 1 + random() % 5; o > 0; --o)
      item.push_back({1 + random() % 40, static_cast<double>(random() % 1000)});
  }
  return items;
}

TEST(Allocation, IsTheBestOfAllChoices) {
  std::mt19937 random(1);
  int solved = 0;
  for (int round = 0; round < 300; ++round) {
    const std::vector<AllocationItem> items = RandomItems(random, 1 + random() % 7);
    const uint64_t budget = 20 + random() % 150;
    const double least = LeastByTrying(items, budget);
    const auto allocation = Allocate(items, budget);
    ASSERT_EQ(allocation.has_value(), std::isfinite(least)) << "round " << round;
    if (!allocation) continue;
    ++solved;
    EXPECT_TRUE(allocation->optimal);
    EXPECT_DOUBLE_EQ(allocation->damage, least) << "round " << round;
    EXPECT_LE(allocation->bytes, budget);
    uint64_t bytes = 0;
    for (size_t i = 0; i < items.size(); ++i) bytes += items[i][allocation->chosen[i]].bytes;
    EXPECT_EQ(bytes, allocation->bytes);
  }
  EXPECT_GT(solved, 200);
}

// Types as they are: damage falls about fourfold with each bit.
TEST(Allocation, ManyItemsAreWithinASmallGapOfTheBound) {
  std::mt19937 random(2);
  std::vector<AllocationItem> items(500);
  uint64_t least = 0;
  for (AllocationItem& item : items) {
    const uint64_t size = 1000 + random() % 100000;
    const double damage = 1.0 + static_cast<double>(random() % 100);
    for (const uint64_t bits : {2, 3, 4, 5, 6, 8})
      item.push_back({size * bits / 8, damage / static_cast<double>(uint64_t{1} << (2 * bits))});
    least += item[0].bytes;
  }
  const auto allocation = Allocate(items, 2 * least);
  ASSERT_TRUE(allocation);
  EXPECT_LE(allocation->bytes, 2 * least);
  EXPECT_LE(allocation->bound, allocation->damage);
  EXPECT_GE(allocation->bound, 0.999 * allocation->damage);
}

TEST(Allocation, TakesTheBestWhereEverythingFits) {
  const std::vector<AllocationItem> items = {{{5, 3}, {9, 1}}, {{4, 0}, {2, 7}}};
  const auto allocation = Allocate(items, 1000);
  ASSERT_TRUE(allocation);
  EXPECT_THAT(allocation->chosen, testing::ElementsAre(1, 0));
  EXPECT_EQ(allocation->damage, 1);
}

TEST(Allocation, TooLittleIsRefusedWithBothNumbers) {
  const std::vector<AllocationItem> items = {{{2048, 3}}, {{1024, 0}, {4096, 7}}};
  const auto allocation = Allocate(items, 2000);
  ASSERT_FALSE(allocation);
  EXPECT_EQ(allocation.error().code, ErrorCode::kDoesNotFit);
  EXPECT_THAT(allocation.error().message, testing::HasSubstr("3.00 KiB"));
  EXPECT_TRUE(Allocate(items, 3072));
}

}  // namespace
}  // namespace sluice::quantize
