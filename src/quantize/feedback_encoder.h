// FeedbackEncoder: rows of a matrix → blocks, where each block makes up for the errors of those before it, as
// far as the columns' inputs are correlated (their Hessian says so).
//
// With H = U Uᵀ, U upper triangular, the error eᵀ H e of a row is the sum over columns j of (Σ_{k ≤ j} U_kj
// e_k)²: what the columns before j have left to it, and its own part. So columns go from left to right, each
// block is fitted to its weights and to what was left, in the metric of its own part of U (formats/refine.h).
// This is the second-order method of Frantar et al. (arXiv 2210.17323), without an inverse, and with blocks
// that are searched instead of rounded.
//
// What is best for a block need not be for those behind it. So each row is encoded without feedback, too, and
// keeps the blocks with the smaller eᵀ H e: no row is worse than the plain encoder makes it.
//
// The result depends on nothing but weights, Hessian and type. Its memory is the ledger's. Context and factor
// outlive it. One thread at a time calls Encode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/dtype.h"
#include "quantize/hessian.h"
#include "runtime/context.h"

namespace sluice::quantize {

class FeedbackEncoder {
 public:
  // factor: of the rows' Hessian (FactorOf). dtype: a block format whose blocks divide the rows. Error:
  // kDoesNotFit.
  static Result<FeedbackEncoder> Create(const runtime::Context& context, const BlockDiagonal& factor,
                                        formats::DType dtype);
  // From the ledger.
  static uint64_t Bytes(int64_t columns, formats::DType dtype);

  // rows: [n, columns], finite and within what the format holds. blocks: n · RowBytes. Returns Σ over rows of
  // eᵀ H e.
  double Encode(std::span<const float> rows, std::span<std::byte> blocks) const;

 private:
  struct Worker;
  FeedbackEncoder(const runtime::Context& context, const BlockDiagonal& factor, formats::DType dtype);
  void MakeMetrics();
  void MakeMetricRow(int part, int64_t c);
  // A part [first, first + width) of n rows, that one diagonal block of H covers.
  void EncodePart(int part, std::span<const float> rows, int64_t n, std::span<std::byte> blocks,
                  Worker& worker) const;
  // Puts the plain encoder's blocks in the place of those of a row's part that are worse.
  void KeepBetter(int part, std::span<const float> weights, std::byte* blocks, double& error,
                  Worker& worker) const;
  // eᵀ H e of errors [width]; `left` is room to work in.
  double ErrorOf(int part, std::span<const float> errors, std::vector<double>& left) const;
  // One block of a row, whose columns begin at `begin` of the part. carry: what was left to it; it is used
  // up. row_error grows by what counts of the block.
  void EncodeBlock(int part, int64_t begin, std::span<const float> weights, float* carry, std::byte* block,
                   double& row_error, Worker& worker) const;
  void SpreadErrors(int part, int64_t begin, int64_t n, Worker& worker) const;

  const runtime::Context* context_;
  const BlockDiagonal* factor_;
  formats::DType dtype_;
  int64_t length_;  // of a block
  memory::Arena memory_;
  float* metrics_ = nullptr;             // [columns, length]: U Uᵀ of each block on the diagonal
  std::vector<float> plain_importance_;  // [columns], the diagonal of H
  // [columns], what counts of a column's error once those behind it make up for it: the squares of U's
  // diagonal
  std::vector<float> importance_;
};

}  // namespace sluice::quantize
