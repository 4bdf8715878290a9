// Recoding: weights of one type → the same weights in another, on all threads, with the error that this
// makes.
//
// Works on pieces of rows. The result depends on nothing but the input: neither the bytes nor the sums change
// with the number of threads. One thread at a time may use a Recoder; it owns its workers' buffers, and the
// pool outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "gguf/tensor_info.h"
#include "parallel/thread_pool.h"
#include "quantize/importance.h"

namespace sluice::quantize {

// Elements of a row that are recoded in one go; whole blocks of every type.
inline constexpr uint64_t kPieceElements = 16384;

// Consecutive pieces of a tensor. Long rows are cut into pieces of kPieceElements, others are a piece each.
struct PieceRange {
  uint64_t first = 0, count = 0;
};

// What recoding did to values, as sums over them.
struct ErrorSums {
  uint64_t elements = 0;
  double error = 0;           // Σ (x − y)²
  double squares = 0;         // Σ x²
  double weighted_error = 0;  // the same, each element times its column's importance
  double weighted_squares = 0;
  double worst = 0;                          // the largest mean of (x − y)² over a block
  uint64_t worst_row = 0, worst_column = 0;  // where that block begins

  // Appends what was measured behind it.
  void Add(const ErrorSums& next);
  double Rmse() const;
  double RelativeError() const;          // √(Σ (x − y)² / Σ x²); 0 where all are 0
  double WeightedRelativeError() const;  // the same by importance
};

// Pieces of a tensor and the bytes that they take in a type.
class PieceLayout {
 public:
  explicit PieceLayout(const gguf::Tensor& tensor);
  uint64_t count() const { return pieces_per_row_ * rows_; }
  // Most pieces with no more than `elements` elements, at least one.
  uint64_t PiecesIn(uint64_t elements) const;
  uint64_t Row(uint64_t piece) const { return piece / pieces_per_row_; }
  uint64_t Column(uint64_t piece) const { return piece % pieces_per_row_ * piece_; }
  uint64_t Elements(uint64_t piece) const;
  uint64_t ByteOffset(formats::DType dtype, uint64_t piece) const;  // also of count(), the end

 private:
  uint64_t columns_, rows_, piece_, pieces_per_row_;
};

// What to say of a weight that a type can't hold: kCorrupt for NaN and infinity, kUnsupported for one too
// large.
Error UnfitError(const gguf::Tensor& tensor, uint64_t row, uint64_t column, float value,
                 formats::DType dtype);

class Recoder {
 public:
  explicit Recoder(parallel::ThreadPool& pool);

  // What the target is: to be filled, or there already, to be compared with the source.
  enum class Target : uint8_t { kEncode, kCompare };

  // Recodes `range` of `tensor` from `source` blocks of its own type into `target` blocks of `dtype`; both
  // are whole pieces. Errors: kCorrupt for a weight that is NaN or infinite, kUnsupported for one that
  // `dtype` can't hold, with its place.
  Result<ErrorSums> Recode(const gguf::Tensor& tensor, PieceRange range, std::span<const std::byte> source,
                           formats::DType dtype, const TensorImportance& importance, Target what,
                           std::span<std::byte> target);
  Result<ErrorSums> Recode(const gguf::Tensor& tensor, PieceRange range, std::span<const std::byte> source,
                           formats::DType dtype, const TensorImportance& importance,
                           std::span<std::byte> target) {
    return Recode(tensor, range, source, dtype, importance, Target::kEncode, target);
  }

 private:
  struct Buffers {
    std::vector<float> values, decoded;
  };
  parallel::ThreadPool& pool_;
  std::vector<Buffers> buffers_;  // one for each worker
};

}  // namespace sluice::quantize
