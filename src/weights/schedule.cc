#include "weights/schedule.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::weights {

namespace {

Extent ExtentOf(const Operation& operation, int matrix, int64_t first_row, int64_t rows) {
  const Matrix& m = operation.matrices[static_cast<size_t>(matrix)];
  return {.matrix = matrix,
          .first_row = first_row,
          .rows = rows,
          .shard = m.tensor->shard,
          .offset = m.row_offset(first_row),
          .size_bytes = static_cast<uint64_t>(rows) * m.row_bytes()};
}

int64_t WholePanels(uint64_t rows) {
  return std::max<int64_t>(kPanelRows, static_cast<int64_t>(rows) / kPanelRows * kPanelRows);
}

void CutPaired(const Operation& operation, uint64_t target_bytes, Slab slab, std::vector<Slab>* slabs) {
  uint64_t bytes_per_row = 0;
  for (int i = 0; i < operation.count; ++i) bytes_per_row += operation.matrices[static_cast<size_t>(i)].row_bytes();
  const int64_t total = operation.matrices[0].rows;
  const int64_t step = WholePanels(target_bytes / bytes_per_row + kPanelRows - 1);
  for (int64_t row = 0; row < total; row += step) {
    slab.rows = std::min(step, total - row);
    slab.n_extents = operation.count;
    for (int i = 0; i < operation.count; ++i)
      slab.extents[static_cast<size_t>(i)] = ExtentOf(operation, i, row, slab.rows);
    slabs->push_back(slab);
  }
}

void CutStacked(const Operation& operation, uint64_t target_bytes, Slab slab, std::vector<Slab>* slabs) {
  const auto finish = [&] {
    if (slab.n_extents > 0) slabs->push_back(slab);
    slab.n_extents = 0;
    slab.rows = 0;
  };
  for (int i = 0; i < operation.count; ++i) {
    const Matrix& m = operation.matrices[static_cast<size_t>(i)];
    for (int64_t row = 0; row < m.rows;) {
      const uint64_t held = slab.size_bytes();
      if (held >= target_bytes) finish();
      const uint64_t room = target_bytes - std::min(target_bytes, slab.size_bytes());
      // Rounded up, so that the slab is full or the matrix at its end: a slab has one extent of each matrix at most.
      const uint64_t filling = (room + m.row_bytes() - 1) / m.row_bytes();
      const int64_t rows = std::min(WholePanels(filling + kPanelRows - 1), m.rows - row);
      slab.extents[static_cast<size_t>(slab.n_extents++)] = ExtentOf(operation, i, row, rows);
      slab.rows += rows;
      row += rows;
    }
  }
  finish();
}

// The output projection may be as large as several layers.
void NumberOutputBlocks(int output, std::vector<Slab>* slabs) {
  std::vector<int> sizes;  // slabs of each layer
  for (const Slab& slab : *slabs) {
    if (slab.operation == output) break;
    sizes.resize(std::max(sizes.size(), static_cast<size_t>(slab.block) + 1));
    ++sizes[static_cast<size_t>(slab.block)];
  }
  const int per_block = sizes.empty() ? 1 : *std::max_element(sizes.begin(), sizes.end());
  int of_output = 0;
  for (Slab& slab : *slabs) {
    if (slab.operation == output) slab.block = static_cast<int>(sizes.size()) + of_output++ / per_block;
  }
}

}  // namespace

int Schedule::Add(std::initializer_list<Matrix> matrices, bool paired, int block) {
  SLUICE_CHECK(matrices.size() >= 1 && matrices.size() <= kMaxMatrices);
  Operation operation{.count = static_cast<int>(matrices.size()), .paired = paired, .block = block};
  std::copy(matrices.begin(), matrices.end(), operation.matrices.begin());
  operations.push_back(operation);
  return static_cast<int>(operations.size()) - 1;
}

uint64_t Slab::size_bytes() const {
  uint64_t total = 0;
  for (int i = 0; i < n_extents; ++i) total += extents[static_cast<size_t>(i)].size_bytes;
  return total;
}

std::vector<Slab> CutSlabs(const Schedule& schedule, uint64_t slab_bytes) {
  std::vector<Slab> slabs;
  for (size_t i = 0; i < schedule.operations.size(); ++i) {
    const Operation& operation = schedule.operations[i];
    uint64_t total = 0;
    for (int m = 0; m < operation.count; ++m) total += operation.matrices[static_cast<size_t>(m)].size_bytes();
    // Equal parts: a small rest would cost a read of its own.
    const uint64_t parts = std::max<uint64_t>(1, (total + slab_bytes - 1) / slab_bytes);
    const Slab begin{.operation = static_cast<int>(i), .block = operation.block};
    (operation.paired ? CutPaired : CutStacked)(operation, total / parts, begin, &slabs);
  }
  NumberOutputBlocks(static_cast<int>(schedule.operations.size()) - 1, &slabs);
  return slabs;
}

}  // namespace sluice::weights
