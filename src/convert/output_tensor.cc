#include "convert/output_tensor.h"

#include <algorithm>
#include <cmath>

namespace sluice::convert {

namespace {

constexpr uint64_t kFloatsAtOnce = 1u << 20;
// What the mean magnitude is at least, so that zeros are divided by something.
constexpr float kLeastMagnitude = 1e-5f;

}  // namespace

uint64_t OutputTensor::source_bytes(uint64_t n_rows) const {
  if (is_computed()) return 0;
  return packed ? n_rows * columns / 2 : n_rows * columns * ElementBytes(source->type);
}

Result<TensorReader> TensorReader::Open(const Checkpoint& checkpoint, const OutputTensor& tensor,
                                        const PackingConfig& packing) {
  TensorReader reader(checkpoint, tensor);
  if (tensor.packed) {
    SLUICE_TRY_ASSIGN(reader.packed_, PackedMatrix::Load(checkpoint, *tensor.packed, packing));
  } else if (tensor.change == Change::kTranspose) {
    SLUICE_TRY(reader.HoldTransposed());
  } else if (tensor.change == Change::kMakeTernary) {
    SLUICE_TRY(reader.MeasureMagnitude());
  }
  return reader;
}

Status TensorReader::MeasureMagnitude() {
  const uint64_t elements = tensor_->source->elements();
  std::vector<float> floats;
  double sum = 0;
  for (uint64_t first = 0; first < elements; first += kFloatsAtOnce) {
    floats.resize(static_cast<size_t>(std::min(kFloatsAtOnce, elements - first)));
    SLUICE_TRY(checkpoint_->Read(*tensor_->source, first, floats));
    for (const float x : floats) sum += std::fabs(double{x});
  }
  magnitude_ = std::max(static_cast<float>(sum / static_cast<double>(elements)), kLeastMagnitude);
  return {};
}

Status TensorReader::HoldTransposed() {
  const uint64_t rows = tensor_->rows, columns = tensor_->columns;
  std::vector<float> stored(static_cast<size_t>(rows * columns));
  SLUICE_TRY(checkpoint_->Read(*tensor_->source, 0, stored));
  held_.resize(stored.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) held_[r * columns + c] = stored[c * rows + r];
  }
  return {};
}

Status TensorReader::ReadRun(uint64_t source_row, std::span<float> out) {
  const uint64_t columns = tensor_->columns;
  if (packed_) {
    for (uint64_t at = 0; at < out.size(); at += columns)
      packed_->ReadRow(source_row + at / columns, out.subspan(at, columns));
    return {};
  }
  if (held_.empty()) return checkpoint_->Read(*tensor_->source, source_row * columns, out);
  std::copy_n(held_.begin() + static_cast<ptrdiff_t>(source_row * columns), out.size(), out.begin());
  return {};
}

Status TensorReader::Read(uint64_t first, std::span<float> out) {
  const uint64_t columns = tensor_->columns, end = first + out.size() / columns;
  for (uint64_t row = first; row < end;) {
    const uint64_t run = std::min(tensor_->order.RunFrom(row), end - row);
    const uint64_t source_row = tensor_->order.SourceOf(row);
    const std::span<float> floats = out.subspan((row - first) * columns, run * columns);
    SLUICE_TRY(ReadRun(source_row, floats));
    const auto odd = std::ranges::find_if(floats, [](float x) { return !std::isfinite(x); });
    if (odd != floats.end()) {
      const auto at = static_cast<uint64_t>(odd - floats.begin());
      return Fail(ErrorCode::kCorrupt, "tensor {} ({}): element {} of row {} is {}", tensor_->named().name,
                  checkpoint_->file_of(tensor_->named()), at % columns, source_row + at / columns, *odd);
    }
    row += run;
  }
  if (tensor_->change == Change::kAddOne) {
    for (float& x : out) x += 1.0f;
  } else if (tensor_->change == Change::kMakeTernary) {
    const float inverse = 1 / magnitude_;
    for (float& x : out) x = magnitude_ * std::clamp(std::nearbyint(x * inverse), -1.0f, 1.0f);
  }
  return {};
}

}  // namespace sluice::convert
