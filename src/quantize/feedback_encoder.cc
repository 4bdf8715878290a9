#include "quantize/feedback_encoder.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "formats/decode.h"
#include "formats/encode.h"
#include "formats/pack.h"
#include "formats/refine.h"

namespace sluice::quantize {
namespace {

// Rows that share what is read of the factor.
constexpr int64_t kRowsAtOnce = 8;
// In which a block's codes and scales are gone over; more gained nothing that could be measured.
constexpr int kRounds = 3;

}  // namespace

struct FeedbackEncoder::Worker {
  std::vector<float> carry;   // [kRowsAtOnce, width], what the errors so far leave to a column
  std::vector<float> errors;  // [kRowsAtOnce, block length], weight − value
  std::vector<float> target, values, gradient;  // [block length]
  std::vector<double> row_errors;               // [kRowsAtOnce], eᵀ H e of the part under way
  std::vector<std::byte> plain;                 // a row's part, encoded without feedback
  std::vector<float> plain_errors;              // [width], of those
  std::vector<double> left;                     // [width], Uᵀ e of those
};

FeedbackEncoder::FeedbackEncoder(const runtime::Context& context, const BlockDiagonal& factor,
                                 formats::DType dtype)
    : context_(&context),
      factor_(&factor),
      dtype_(dtype),
      length_(static_cast<int64_t>(formats::Traits(dtype).block_length)),
      plain_importance_(OwnWeights(factor)) {
  SLUICE_CHECK(formats::IsQuantised(dtype) && factor.columns() % length_ == 0);
  for (int64_t c = 0; c < factor.columns(); ++c) importance_.push_back(factor.at(c) * factor.at(c));
}

uint64_t FeedbackEncoder::Bytes(int64_t columns, formats::DType dtype) {
  return static_cast<uint64_t>(columns) * formats::Traits(dtype).block_length * sizeof(float);
}

Result<FeedbackEncoder> FeedbackEncoder::Create(const runtime::Context& context, const BlockDiagonal& factor,
                                                formats::DType dtype) {
  FeedbackEncoder encoder(context, factor, dtype);
  const uint64_t bytes = Bytes(factor.columns(), dtype);
  SLUICE_TRY_ASSIGN(encoder.memory_,
                    memory::Arena::Create(bytes, memory::Account::kActivations, *context.ledger));
  encoder.metrics_ = reinterpret_cast<float*>(encoder.memory_.Allocate(bytes).data());
  encoder.MakeMetrics();
  return encoder;
}

// U Uᵀ of each block on the diagonal.
void FeedbackEncoder::MakeMetrics() {
  for (int part = 0; part < factor_->blocks(); ++part) {
    const int64_t width = factor_->width(part);
    context_->pool->ParallelFor(width, 8, [&](int64_t begin, int64_t end, int) {
      for (int64_t c = begin; c < end; ++c) MakeMetricRow(part, c);
    });
  }
}

// Row c of U Uᵀ within its block: all of it, so that both triangles are there.
void FeedbackEncoder::MakeMetricRow(int part, int64_t c) {
  const int64_t width = factor_->width(part), first = c / length_ * length_, i = c - first;
  const float* const u = factor_->data(part) + first * width + first;
  float* const metric = metrics_ + (factor_->first(part) + c) * length_;
  for (int64_t j = 0; j < length_; ++j) {
    double sum = 0;
    for (int64_t k = std::max(i, j); k < length_; ++k)
      sum += double{u[i * width + k]} * double{u[j * width + k]};
    metric[j] = static_cast<float>(sum);
  }
}

void FeedbackEncoder::EncodePart(int part, std::span<const float> rows, int64_t n,
                                 std::span<std::byte> blocks, Worker& worker) const {
  const int64_t first = factor_->first(part), width = factor_->width(part), columns = factor_->columns();
  const size_t row_bytes = formats::RowBytes(dtype_, static_cast<uint64_t>(columns));
  worker.carry.assign(static_cast<size_t>(n * width), 0);
  worker.errors.resize(static_cast<size_t>(n * length_));
  worker.row_errors.assign(static_cast<size_t>(n), 0);
  for (int64_t begin = 0; begin < width; begin += length_) {
    const auto column = static_cast<size_t>(first + begin);
    for (int64_t r = 0; r < n; ++r) {
      const std::span<const float> weights =
          rows.subspan(static_cast<size_t>(r * columns) + column, static_cast<size_t>(length_));
      EncodeBlock(part, begin, weights, worker.carry.data() + r * width + begin,
                  blocks.data() + static_cast<size_t>(r) * row_bytes + formats::RowBytes(dtype_, column),
                  worker.row_errors[static_cast<size_t>(r)], worker);
      float* const errors = worker.errors.data() + r * length_;
      for (int64_t i = 0; i < length_; ++i)
        errors[i] = weights[static_cast<size_t>(i)] - worker.values[static_cast<size_t>(i)];
    }
    SpreadErrors(part, begin, n, worker);
  }
  for (int64_t r = 0; r < n; ++r) {
    const size_t offset =
        static_cast<size_t>(r) * row_bytes + formats::RowBytes(dtype_, static_cast<uint64_t>(first));
    KeepBetter(part, rows.subspan(static_cast<size_t>(r * columns + first), static_cast<size_t>(width)),
               blocks.data() + offset, worker.row_errors[static_cast<size_t>(r)], worker);
  }
}

void FeedbackEncoder::KeepBetter(int part, std::span<const float> weights, std::byte* blocks, double& error,
                                 Worker& worker) const {
  const std::span importance =
      std::span(plain_importance_).subspan(static_cast<size_t>(factor_->first(part)), weights.size());
  worker.plain.resize(formats::RowBytes(dtype_, weights.size()));
  worker.plain_errors.resize(weights.size());
  formats::EncodeRow(dtype_, weights, importance, worker.plain.data());
  formats::DecodeRow(dtype_, worker.plain.data(), worker.plain_errors);
  std::ranges::transform(weights, worker.plain_errors, worker.plain_errors.begin(), std::minus<>());
  const double plain = ErrorOf(part, worker.plain_errors, worker.left);
  if (!(plain < error)) return;
  error = plain;
  std::ranges::copy(worker.plain, blocks);
}

double FeedbackEncoder::ErrorOf(int part, std::span<const float> errors, std::vector<double>& left) const {
  const auto width = static_cast<size_t>(factor_->width(part));
  const float* const u = factor_->data(part);
  left.assign(width, 0);
  for (size_t i = 0; i < width; ++i) {
    const double error = errors[i];
    const float* const row = u + i * width;
    for (size_t j = i; j < width; ++j) left[j] += error * double{row[j]};
  }
  return std::inner_product(left.begin(), left.end(), left.begin(), 0.0);
}

void FeedbackEncoder::EncodeBlock(int part, int64_t begin, std::span<const float> weights, float* carry,
                                  std::byte* block, double& row_error, Worker& worker) const {
  const int64_t width = factor_->width(part), column = factor_->first(part) + begin;
  const formats::SquareView u{factor_->data(part) + begin * width + begin, static_cast<size_t>(width)};
  const formats::SquareView metric{metrics_ + column * length_, static_cast<size_t>(length_)};
  const auto length = static_cast<int>(length_);
  // The weights that would make up for all that was left: R target = R weights + carry, R = Uᵀ.
  for (int i = 0; i < length; ++i) {
    const float* const row = u.row(i);
    const float change = carry[i] / row[i];
    worker.target[static_cast<size_t>(i)] = weights[static_cast<size_t>(i)] + change;
    for (int j = i + 1; j < length; ++j) carry[j] -= change * row[j];
  }
  const std::span<const float> importance(importance_.data() + column, static_cast<size_t>(length_));
  formats::EncodeRow(dtype_, worker.target, importance, block);
  formats::UnpackedBlock unpacked;
  formats::UnpackerFor(dtype_)(block, unpacked);
  if (formats::CanRefine(dtype_)) {
    formats::RoundWithFeedback(dtype_, worker.target, u, unpacked);
    formats::ValuesOf(unpacked, worker.values);
    std::ranges::fill(worker.gradient, 0.0f);
    for (int i = 0; i < length; ++i) {
      const float error = worker.target[static_cast<size_t>(i)] - worker.values[static_cast<size_t>(i)];
      const float* const row = metric.row(i);
      for (int j = 0; j < length; ++j) worker.gradient[static_cast<size_t>(j)] += error * row[j];
    }
    formats::Refine(dtype_, metric, kRounds, worker.gradient, unpacked);
    formats::PackerFor(dtype_)(unpacked, block);
  }
  formats::ValuesOf(unpacked, worker.values);
  // What counts of this block: |R (target − values)|².
  for (int j = 0; j < length; ++j) {
    double left = 0;
    for (int i = 0; i <= j; ++i) {
      const auto at = static_cast<size_t>(i);
      left += double{u.row(i)[j]} * double{worker.target[at] - worker.values[at]};
    }
    row_error += left * left;
  }
}

// What the errors of a block's columns leave to those behind it.
void FeedbackEncoder::SpreadErrors(int part, int64_t begin, int64_t n, Worker& worker) const {
  const int64_t width = factor_->width(part);
  for (int64_t k = 0; k < length_; ++k) {
    const float* const row = factor_->data(part) + (begin + k) * width;
    for (int64_t r = 0; r < n; ++r) {
      const float error = worker.errors[static_cast<size_t>(r * length_ + k)];
      float* const carry = worker.carry.data() + r * width;
      for (int64_t j = begin + length_; j < width; ++j) carry[j] += error * row[j];
    }
  }
}

double FeedbackEncoder::Encode(std::span<const float> rows, std::span<std::byte> blocks) const {
  const int64_t columns = factor_->columns(), n = static_cast<int64_t>(rows.size()) / columns;
  const size_t row_bytes = formats::RowBytes(dtype_, static_cast<uint64_t>(columns));
  SLUICE_CHECK(static_cast<size_t>(n * columns) == rows.size() &&
               blocks.size() == static_cast<size_t>(n) * row_bytes);
  std::vector<Worker> workers(static_cast<size_t>(context_->pool->size()));
  for (Worker& worker : workers) {
    for (std::vector<float>* buffer : {&worker.target, &worker.values, &worker.gradient})
      buffer->resize(static_cast<size_t>(length_));
  }
  const int64_t batches = (n + kRowsAtOnce - 1) / kRowsAtOnce;
  std::vector<double> errors(static_cast<size_t>(batches));  // of each batch, to be summed in their order
  context_->pool->ParallelFor(batches, 1, [&](int64_t begin, int64_t end, int index) {
    Worker& worker = workers[static_cast<size_t>(index)];
    for (int64_t batch = begin; batch < end; ++batch) {
      const int64_t first = batch * kRowsAtOnce, count = std::min(kRowsAtOnce, n - first);
      const auto some =
          rows.subspan(static_cast<size_t>(first * columns), static_cast<size_t>(count * columns));
      const auto out =
          blocks.subspan(static_cast<size_t>(first) * row_bytes, static_cast<size_t>(count) * row_bytes);
      double& error = errors[static_cast<size_t>(batch)];
      for (int part = 0; part < factor_->blocks(); ++part) {
        EncodePart(part, some, count, out, worker);
        error = std::accumulate(worker.row_errors.begin(), worker.row_errors.end(), error);
      }
    }
  });
  return std::accumulate(errors.begin(), errors.end(), 0.0);
}

}  // namespace sluice::quantize
