#include "convert/row_order.h"

#include <gmock/gmock.h>

namespace sluice::convert {
namespace {

using testing::ElementsAre;

std::vector<uint64_t> Sources(const RowOrder& order) {
  std::vector<uint64_t> rows;
  for (uint64_t row = 0; row < order.rows(); ++row) rows.push_back(order.SourceOf(row));
  return rows;
}

// Two keys of two rows each, shared by two queries.
constexpr Heads kHeads{.queries = 4, .keys = 2, .width = 2};

TEST(RowOrderTest, InPlace) {
  const RowOrder order = RowOrder::Of(Change::kAddOne, kHeads, 3);
  EXPECT_THAT(Sources(order), ElementsAre(0, 1, 2));
  EXPECT_EQ(order.RunFrom(1), 2u);
}

TEST(RowOrderTest, Pairs) {
  const RowOrder order = RowOrder::Of(Change::kPairKeys, {.queries = 2, .keys = 2, .width = 4}, 8);
  EXPECT_THAT(Sources(order), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_EQ(order.RunFrom(0), 1u);
}

TEST(RowOrderTest, SortedQkv) {
  // Checkpoint: query query key value, query query key value.
  const RowOrder order = RowOrder::Of(Change::kSortQkv, kHeads, 16);
  EXPECT_EQ(order.source_rows(), 16u);
  EXPECT_THAT(Sources(order), ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  EXPECT_EQ(order.RunFrom(1), 3u);
  EXPECT_EQ(order.RunFrom(8), 2u);
}

TEST(RowOrderTest, SplitQkv) {
  constexpr Heads heads{.queries = 2, .keys = 1, .width = 4};
  const RowOrder queries = RowOrder::Of(Change::kTakeQueries, heads, 16);
  EXPECT_EQ(queries.source_rows(), 16u);
  EXPECT_THAT(Sources(queries), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(Sources(RowOrder::Of(Change::kTakeKeys, heads, 16)), ElementsAre(8, 10, 9, 11));
  EXPECT_THAT(Sources(RowOrder::Of(Change::kTakeValues, heads, 16)), ElementsAre(12, 13, 14, 15));
}

}  // namespace
}  // namespace sluice::convert
