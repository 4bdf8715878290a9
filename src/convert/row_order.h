// RowOrder: which rows of a checkpoint's matrix a matrix of the file has, and in which order.
//
// Heads are stored differently on the two sides: checkpoints keep queries, keys and values of a group of
// heads side by side in one matrix, or the pairs of numbers that rope turns half a head apart.
#pragma once

#include <cstdint>
#include <vector>

#include "convert/family.h"

namespace sluice::convert {

// The heads of a model's attention.
struct Heads {
  uint64_t queries = 0, keys = 0;  // of them
  uint64_t width = 0;              // rows of each
};

class RowOrder {
 public:
  // Every row where it is.
  explicit RowOrder(uint64_t rows) : rows_(rows), source_rows_(rows) {}
  // What a change does to a matrix (or the bias) of `rows` rows. Changes that are not of rows leave them in
  // place.
  static RowOrder Of(Change change, const Heads& heads, uint64_t rows);

  uint64_t rows() const { return rows_; }
  // That the checkpoint's matrix must have.
  uint64_t source_rows() const { return source_rows_; }
  uint64_t SourceOf(uint64_t row) const;
  // Rows from `row` on that lie one behind the other in the checkpoint, too; at least 1.
  uint64_t RunFrom(uint64_t row) const;

 private:
  RowOrder() = default;
  // Of each of several groups of rows, some. With `head` > 0, row 2i of every `head` rows comes from row i,
  // and row 2i + 1 from row i + head / 2.
  struct Slice {
    uint64_t groups = 1, group_rows = 0;
    uint64_t first = 0, count = 0;  // within a group
    uint64_t head = 0;
  };
  void Take(const Slice& slice);

  std::vector<Slice> slices_;  // none: all rows in place
  uint64_t rows_ = 0, source_rows_ = 0;
};

}  // namespace sluice::convert
