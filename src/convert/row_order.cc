#include "convert/row_order.h"

#include "base/check.h"

namespace sluice::convert {

void RowOrder::Take(const Slice& slice) {
  slices_.push_back(slice);
  rows_ += slice.groups * slice.count;
  source_rows_ = slice.groups * slice.group_rows;
}

RowOrder RowOrder::Of(Change change, const Heads& heads, uint64_t rows) {
  RowOrder order;
  const uint64_t head = heads.width, shared = heads.queries / heads.keys * head;
  // A group: the queries that share a key, that key, its value.
  const Slice queries{.groups = heads.keys, .group_rows = shared + 2 * head, .count = shared};
  const Slice keys{.groups = heads.keys, .group_rows = shared + 2 * head, .first = shared, .count = head};
  const Slice values{
      .groups = heads.keys, .group_rows = shared + 2 * head, .first = shared + head, .count = head};
  const auto paired = [head](Slice slice) {
    slice.head = head;
    return slice;
  };
  switch (change) {
    case Change::kPairQueries:
      order.Take({.group_rows = heads.queries * head, .count = heads.queries * head, .head = head});
      break;
    case Change::kPairKeys:
      order.Take({.group_rows = heads.keys * head, .count = heads.keys * head, .head = head});
      break;
    case Change::kSortQkv:
      for (const Slice& slice : {queries, keys, values}) order.Take(slice);
      break;
    case Change::kTakeQueries:
      order.Take(paired(queries));
      break;
    case Change::kTakeKeys:
      order.Take(paired(keys));
      break;
    case Change::kTakeValues:
      order.Take(values);
      break;
    default:
      return RowOrder(rows);
  }
  return order;
}

uint64_t RowOrder::SourceOf(uint64_t row) const {
  for (const Slice& slice : slices_) {
    if (row >= slice.groups * slice.count) {
      row -= slice.groups * slice.count;
      continue;
    }
    uint64_t within = row % slice.count;
    if (slice.head > 0) {
      const uint64_t at = within % slice.head;
      within = within - at + at / 2 + at % 2 * (slice.head / 2);
    }
    return row / slice.count * slice.group_rows + slice.first + within;
  }
  SLUICE_CHECK(slices_.empty());
  return row;
}

uint64_t RowOrder::RunFrom(uint64_t row) const {
  if (slices_.empty()) return rows_ - row;
  for (const Slice& slice : slices_) {
    if (row < slice.groups * slice.count) return slice.head > 0 ? 1 : slice.count - row % slice.count;
    row -= slice.groups * slice.count;
  }
  return 1;
}

}  // namespace sluice::convert
