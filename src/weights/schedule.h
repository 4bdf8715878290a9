// Schedule: the weight matrices of a model in the order in which a forward pass multiplies with them, and the slabs that
// they are read in.
//
// A pass reads its weights in the same order each time, so what comes next is always known. An operation is what is
// computed together: the Q, K and V products, a gate and its up projection, one matrix alone. A slab is a run of whole
// rows of an operation, large enough to be read at the storage's full speed: up to three extents, one of each matrix.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "formats/dtype.h"
#include "gguf/reader.h"

namespace sluice::weights {

// A weight matrix, or some rows of one that a file holds fused with others: where it lies, not its bytes.
// A product with activations x is y[r] = Σ_c w[r, c] · x[c]: columns is the input width, rows the output width.
struct Matrix {
  formats::DType dtype = formats::DType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  const gguf::Tensor* tensor = nullptr;  // the one that it is, or is a part of
  int64_t first_row = 0;                 // in the tensor

  explicit operator bool() const { return tensor != nullptr; }
  uint64_t row_bytes() const { return formats::RowBytes(dtype, static_cast<uint64_t>(columns)); }
  uint64_t size_bytes() const { return static_cast<uint64_t>(rows) * row_bytes(); }
  // Of a row, in its file.
  uint64_t row_offset(int64_t row) const {
    return tensor->offset + static_cast<uint64_t>(first_row + row) * row_bytes();
  }
};

inline constexpr int kMaxMatrices = 3;
// Slabs and what is computed at a time are cut in multiples of so many rows: what kernels unpack together for
// a batch.
inline constexpr int64_t kPanelRows = 32;

struct Operation {
  std::array<Matrix, kMaxMatrices> matrices;
  int count = 0;
  bool paired = false;  // row r of all matrices is used together; else the rows of one matrix follow those of another
  int block = 0;        // the layer that it belongs to
};

// The operations of a pass, in order. The last is the output projection, which a pass runs as often as it needs:
// not at all when nobody wants logits.
struct Schedule {
  std::vector<Operation> operations;

  // Appends an operation and returns its index.
  int Add(std::initializer_list<Matrix> matrices, bool paired, int block);
};

// Rows [first_row, first_row + rows) of an operation's matrix.
struct Extent {
  int matrix = 0;
  int64_t first_row = 0;
  int64_t rows = 0;
  uint32_t shard = 0;   // the file, and where in it
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

struct Slab {
  int operation = 0;
  int block = 0;     // the layer; the output projection makes as many blocks of a layer's size as it needs
  int64_t rows = 0;  // to be worked on; those of paired matrices count once
  int n_extents = 0;
  std::array<Extent, kMaxMatrices> extents;

  uint64_t size_bytes() const;
};

// Cuts a schedule into slabs of about slab_bytes, in the order of the pass. All slabs of an operation are of about the
// same size, and whole multiples of the kernels' panels of rows as far as that goes.
std::vector<Slab> CutSlabs(const Schedule& schedule, uint64_t slab_bytes);

}  // namespace sluice::weights
