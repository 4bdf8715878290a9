// TensorView: a matrix or vector that somebody else owns. Passed by value; never owns, never allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/dtype.h"

namespace sluice::tensor {

// Weights as the file stores them: `rows` rows of `columns` elements, rows packed one after the other.
// A product with activations x is y[r] = Σ_c w[r, c] · x[c]: columns is the input width, rows the output width.
// A vector (norm weight, bias) has rows == 1.
struct TensorView {
  formats::DType dtype = formats::DType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  const std::byte* data = nullptr;

  explicit operator bool() const { return data != nullptr; }
  size_t row_bytes() const { return formats::RowBytes(dtype, static_cast<uint64_t>(columns)); }
  size_t size_bytes() const { return static_cast<size_t>(rows) * row_bytes(); }
  const std::byte* row(int64_t r) const { return data + static_cast<size_t>(r) * row_bytes(); }
  // The elements of an F32 tensor.
  const float* f32() const { return reinterpret_cast<const float*>(data); }
};

}  // namespace sluice::tensor
