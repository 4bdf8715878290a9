// Hessian: how the errors of a matrix's columns count together. For inputs x of the matrix, H = mean of x·xᵀ:
// the mean squared error of an output whose weights are off by e is eᵀ H e.
//
// Wide matrices have it in diagonal blocks of at most `widest` columns; what lies between two blocks is taken
// for uncorrelated. Sums depend on nothing but the inputs and how they were cut into calls of Add. Owns its
// memory, all of it charged to the ledger. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "memory/arena.h"
#include "runtime/context.h"

namespace sluice::quantize {

// A symmetric matrix in diagonal blocks.
class BlockDiagonal {
 public:
  // All zeros. `columns` are cut into blocks of equal width, a multiple of 256 up to the last, at most
  // `widest`. Error: kDoesNotFit.
  static Result<BlockDiagonal> Create(const runtime::Context& context, int64_t columns, int64_t widest);
  static uint64_t Bytes(int64_t columns, int64_t widest);

  int64_t columns() const { return columns_; }
  int blocks() const { return static_cast<int>((columns_ + width_ - 1) / width_); }
  int64_t first(int block) const { return width_ * block; }
  int64_t width(int block) const { return std::min(width_, columns_ - first(block)); }
  // [width, width], row by row.
  float* data(int block) { return data_ + first(block) * width_; }
  const float* data(int block) const { return data_ + first(block) * width_; }
  float at(int64_t column) const {
    const int block = static_cast<int>(column / width_);
    const int64_t i = column - first(block);
    return data(block)[i * width(block) + i];
  }

 private:
  int64_t columns_ = 0, width_ = 0;
  memory::Arena arena_;
  float* data_ = nullptr;
};

class Hessian {
 public:
  // Error: kDoesNotFit.
  static Result<Hessian> Create(const runtime::Context& context, int64_t columns, int64_t widest);
  // What adding takes beside the matrix.
  static uint64_t WorkingBytes(int64_t columns, int64_t widest, int workers);

  int64_t columns() const { return sums_.columns(); }
  int64_t count() const { return count_; }
  // inputs: [count, columns].
  void Add(const runtime::Context& context, const float* inputs, int64_t count);
  // Once, after the last Add: sums become means, both triangles are there, and `damping` times the mean of
  // the diagonal is added to the diagonal, so that columns which are never used count a little. Where all
  // inputs were 0 all columns count alike. Error: kCorrupt for an input that was NaN or infinite.
  Status Finish(double damping);

  const BlockDiagonal& matrix() const { return sums_; }
  BlockDiagonal TakeMatrix() && { return std::move(sums_); }

 private:
  void AddSome(const runtime::Context& context, const float* inputs, int64_t count);

  BlockDiagonal sums_;
  int64_t count_ = 0;
  memory::Arena working_;
  float* turned_ = nullptr;  // [columns, rows] of the inputs being added
  struct Worker {
    std::span<std::byte> scratch;
    float* products = nullptr;  // of some columns with all before them
  };
  std::vector<Worker> workers_;
};

// The upper triangular U with H = U Uᵀ, block by block, zeros below the diagonal; it takes H's place. The
// Hessian is finished. Error: kCorrupt when a block is not positive definite.
Result<BlockDiagonal> FactorOf(const runtime::Context& context, Hessian hessian);

// The diagonal of U Uᵀ: what the error of each column counts by itself. [columns]
std::vector<float> OwnWeights(const BlockDiagonal& factor);

}  // namespace sluice::quantize
