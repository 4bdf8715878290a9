// Made-up weights and activations that are valid in every format, to time kernels with: for benchmarks, and for the
// measurement of a device that planning stands on.
#pragma once

#include <span>
#include <vector>

#include "formats/dtype.h"
#include "kernels/kernels.h"

namespace sluice::kernels {

// The same numbers in each run.
class MadeUpNumbers {
 public:
  uint32_t Next() { return state_ = state_ * 1664525u + 1013904223u; }

 private:
  uint32_t state_ = 1;
};

// Random codes; bytes of 0x20 … 0x3b everywhere make ordinary scales in every float format.
inline void FillRandom(std::span<std::byte> bytes) {
  MadeUpNumbers numbers;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(0x20 + (numbers.Next() >> 24) % 0x1c);
}

// A batch of activation rows, in the form that a weight type meets.
class Activations {
 public:
  Activations(const Kernels& kernels, formats::DType weight, int64_t columns, int64_t batch)
      : f32_(static_cast<size_t>(batch * columns)),
        q_(f32_.size()),
        scale_(f32_.size()),
        sums_(f32_.size()),
        reach_(f32_.size() / 256) {
    // Sums of four random numbers, nearly normal, as a model's are.
    MadeUpNumbers numbers;
    for (float& x : f32_) {
      x = 0.0f;
      for (int i = 0; i < 4; ++i) x += static_cast<float>(numbers.Next() >> 8) * 0x1p-23f - 1.0f;
    }
    const ActivationKind kind = ActivationKindFor(weight);
    rows_ = {.kind = kind, .batch = batch, .columns = columns, .f32 = f32_.data()};
    if (kind == ActivationKind::kF32) return;
    const bool has_reach = kind == ActivationKind::kQ8x256 && kernels.measure_reach != nullptr;
    for (int64_t b = 0; b < batch; ++b) {
      kernels.quantize_row(kind, f32_.data() + b * columns, columns, q_.data() + b * columns,
                           scale_.data() + b * (columns / BlockLength(kind)),
                           sums_.data() + b * (columns / 16));
      if (has_reach)
        kernels.measure_reach(q_.data() + b * columns, columns, reach_.data() + b * (columns / 256));
    }
    rows_.q = q_.data();
    rows_.scale = scale_.data();
    rows_.sums = sums_.data();
    if (has_reach) rows_.reach = reach_.data();
  }
  Activations(const Activations&) = delete;
  Activations& operator=(const Activations&) = delete;

  const ActivationRows& rows() const { return rows_; }

 private:
  std::vector<float> f32_;
  std::vector<int8_t> q_;
  std::vector<float> scale_;
  std::vector<int16_t> sums_;
  std::vector<Reach> reach_;
  ActivationRows rows_;
};

}  // namespace sluice::kernels
