#include "quantize/recode.h"

#include <algorithm>
#include <cmath>

#include "formats/decode.h"
#include "formats/encode.h"

namespace sluice::quantize {
namespace {

// The worst block of formats without blocks is looked for among runs of this many elements.
constexpr uint64_t kShortestBlock = 32;
// Elements that a worker takes at a time at least.
constexpr uint64_t kGrainElements = 4096;

struct PieceResult {
  ErrorSums sums;
  uint64_t unfit = UINT64_MAX;  // index in the piece of the first value that can't be encoded
  float unfit_value = 0;
};

ErrorSums Compare(std::span<const float> values, std::span<const float> decoded,
                  std::span<const float> importance, uint64_t block) {
  ErrorSums sums{.elements = values.size()};
  for (uint64_t begin = 0; begin < values.size(); begin += block) {
    const uint64_t end = std::min<uint64_t>(begin + block, values.size());
    double error = 0;
    for (uint64_t i = begin; i < end; ++i) {
      const double x = values[i], difference = x - decoded[i], square = difference * difference;
      error += square;
      sums.squares += x * x;
      if (!importance.empty()) {
        sums.weighted_error += importance[i] * square;
        sums.weighted_squares += importance[i] * x * x;
      }
    }
    sums.error += error;
    const double mean = error / static_cast<double>(end - begin);
    if (mean > sums.worst) {
      sums.worst = mean;
      sums.worst_column = begin;
    }
  }
  return sums;
}

}  // namespace

Error UnfitError(const gguf::Tensor& tensor, uint64_t row, uint64_t column, float value,
                 formats::DType dtype) {
  const std::string place =
      fmt::format("tensor {}: the weight at row {}, column {}", tensor.name, row, column);
  if (!std::isfinite(value)) return Fail(ErrorCode::kCorrupt, "{} is {}", place, value);
  return Fail(ErrorCode::kUnsupported, "{} is {}, and {} holds at most ±{}; --tensor-type {}=BF16 keeps it",
              place, value, formats::Name(dtype), formats::LargestValue(dtype), tensor.name);
}

void ErrorSums::Add(const ErrorSums& next) {
  elements += next.elements;
  error += next.error;
  squares += next.squares;
  weighted_error += next.weighted_error;
  weighted_squares += next.weighted_squares;
  if (next.worst > worst) {
    worst = next.worst;
    worst_row = next.worst_row;
    worst_column = next.worst_column;
  }
}

double ErrorSums::Rmse() const {
  return elements == 0 ? 0 : std::sqrt(error / static_cast<double>(elements));
}
double ErrorSums::RelativeError() const { return squares > 0 ? std::sqrt(error / squares) : 0; }
double ErrorSums::WeightedRelativeError() const {
  return weighted_squares > 0 ? std::sqrt(weighted_error / weighted_squares) : 0;
}

PieceLayout::PieceLayout(const gguf::Tensor& tensor)
    : columns_(tensor.columns()),
      rows_(tensor.rows()),
      piece_(std::min(columns_, kPieceElements)),
      pieces_per_row_((columns_ + piece_ - 1) / piece_) {}

uint64_t PieceLayout::PiecesIn(uint64_t elements) const { return std::max<uint64_t>(elements / piece_, 1); }

uint64_t PieceLayout::Elements(uint64_t piece) const { return std::min(piece_, columns_ - Column(piece)); }

uint64_t PieceLayout::ByteOffset(formats::DType dtype, uint64_t piece) const {
  return Row(piece) * formats::RowBytes(dtype, columns_) + formats::RowBytes(dtype, Column(piece));
}

Recoder::Recoder(parallel::ThreadPool& pool) : pool_(pool), buffers_(static_cast<size_t>(pool.size())) {
  for (Buffers& buffers : buffers_) {
    buffers.values.resize(kPieceElements);
    buffers.decoded.resize(kPieceElements);
  }
}

Result<ErrorSums> Recoder::Recode(const gguf::Tensor& tensor, PieceRange range,
                                  std::span<const std::byte> source, formats::DType dtype,
                                  const TensorImportance& importance, Target what,
                                  std::span<std::byte> target) {
  const PieceLayout layout(tensor);
  const formats::DType source_dtype = tensor.traits->dtype;
  const uint64_t block = std::max<uint64_t>(formats::Traits(dtype).block_length, kShortestBlock);
  const uint64_t source_begin = layout.ByteOffset(source_dtype, range.first);
  const uint64_t target_begin = layout.ByteOffset(dtype, range.first);
  std::vector<PieceResult> results(range.count);

  const auto recode = [&](uint64_t index, Buffers& buffers) {
    const uint64_t piece = range.first + index, row = layout.Row(piece), column = layout.Column(piece);
    const std::span values = std::span(buffers.values).first(layout.Elements(piece));
    const std::span decoded = std::span(buffers.decoded).first(values.size());
    formats::DecodeRow(source_dtype, source.data() + (layout.ByteOffset(source_dtype, piece) - source_begin),
                       values);
    PieceResult& result = results[index];
    if (const size_t unfit = formats::FindUnfitValue(dtype, values); unfit < values.size()) {
      result.unfit = unfit;
      result.unfit_value = values[unfit];
      return;
    }
    std::byte* const blocks = target.data() + (layout.ByteOffset(dtype, piece) - target_begin);
    const std::span<const float> weights = importance.Of(tensor, row, column, values.size());
    if (what == Target::kEncode) formats::EncodeRow(dtype, values, weights, blocks);
    formats::DecodeRow(dtype, blocks, decoded);
    result.sums = Compare(values, decoded, weights, block);
    result.sums.worst_row = row;
    result.sums.worst_column += column;
  };
  const auto grain = static_cast<int64_t>(layout.PiecesIn(kGrainElements));
  pool_.ParallelFor(static_cast<int64_t>(range.count), grain, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i)
      recode(static_cast<uint64_t>(i), buffers_[static_cast<size_t>(worker)]);
  });

  ErrorSums sums;
  for (uint64_t i = 0; i < range.count; ++i) {
    const PieceResult& result = results[i];
    if (result.unfit != UINT64_MAX) {
      const uint64_t piece = range.first + i;
      return UnfitError(tensor, layout.Row(piece), layout.Column(piece) + result.unfit, result.unfit_value,
                        dtype);
    }
    sums.Add(result.sums);
  }
  return sums;
}

}  // namespace sluice::quantize
