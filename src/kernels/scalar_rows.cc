// Everything that works on one row of floats: quantising activations, norms, gates, rotation.
#include <bit>
#include <cmath>

#include "base/half.h"
#include "base/math.h"
#include "kernels/lanes.h"
#include "kernels/scalar.h"

namespace sluice::kernels::scalar {
namespace {

// Scales below the smallest normal float are taken as zero, so that 1 / scale is finite.
constexpr float kSmallestScale = 0x1p-126f;

void QuantizeBlock(const float* x, int length, int8_t* q, float* scale) {
  uint32_t amax_bits = 0;  // magnitudes order like their bits, NaNs above infinity
  for (int i = 0; i < length; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
    amax_bits = magnitude > amax_bits ? magnitude : amax_bits;
  }
  float d = std::bit_cast<float>(amax_bits) / 127.0f;
  float inverse = 1.0f / d;
  if (amax_bits >= 0x7f800000u) {
    d = std::bit_cast<float>(0x7fc00000u);  // NaN: what meets this block is NaN
    inverse = 0.0f;
  } else if (d < kSmallestScale) {
    d = 0.0f;
    inverse = 0.0f;
  }
  *scale = d;
  for (int i = 0; i < length; ++i) {
    q[i] = inverse == 0.0f ? int8_t{0} : static_cast<int8_t>(std::nearbyint(x[i] * inverse));
  }
}

float Times(float value, const float* factor, int64_t i) {
  return factor == nullptr ? value : value * factor[i];
}

}  // namespace

void QuantizeRow(ActivationKind kind, const float* x, int64_t columns, int8_t* q, float* scale,
                 int16_t* sums) {
  const int length = BlockLength(kind);
  for (int64_t i = 0; i < columns; i += length) QuantizeBlock(x + i, length, q + i, scale + i / length);
  for (int64_t i = 0; i < columns; i += 16) {
    int sum = 0;
    for (int j = 0; j < 16; ++j) sum += q[i + j];
    sums[i / 16] = static_cast<int16_t>(sum);
  }
}

void F32ToF16Row(const float* x, int64_t n, uint16_t* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = F32ToF16(x[i]);
}

void RmsNorm(const float* x, const float* weight, int64_t n, float eps, float* y) {
  const auto element = [&](int64_t i) { return x[i]; };
  const float mean_square = Dot16(n, element, element) / static_cast<float>(n);
  const float r = 1.0f / std::sqrt(mean_square + eps);
  for (int64_t i = 0; i < n; ++i) y[i] = Times(x[i] * r, weight, i);
}

void LayerNorm(const float* x, const float* weight, const float* bias, int64_t n, float eps, float* y) {
  Lanes sum;
  for (int64_t i = 0; i < n; ++i) sum.lane[i % kLanes] = sum.lane[i % kLanes] + x[i];
  const float mean = sum.Fold() / static_cast<float>(n);
  const auto centred = [&](int64_t i) { return x[i] - mean; };
  const float variance = Dot16(n, centred, centred) / static_cast<float>(n);
  const float r = 1.0f / std::sqrt(variance + eps);
  for (int64_t i = 0; i < n; ++i) {
    const float scaled = Times((x[i] - mean) * r, weight, i);
    y[i] = bias == nullptr ? scaled : scaled + bias[i];
  }
}

void Silu(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = Times(gate[i] / (1.0f + Exp(-gate[i])), up, i);
}

// x · ½(1 + tanh u) = x / (1 + e^(−2u)) with u = √(2/π) · (x + 0.044715 x³)
void GeluTanh(const float* gate, const float* up, int64_t n, float* y) {
  constexpr float kMinusTwoRootTwoOverPi = -1.5957691216057308f;
  for (int64_t i = 0; i < n; ++i) {
    const float x = gate[i];
    const float u = (x * kMinusTwoRootTwoOverPi) * std::fma(0.044715f * x, x, 1.0f);
    y[i] = Times(x / (1.0f + Exp(u)), up, i);
  }
}

void GeluErf(const float* gate, const float* up, int64_t n, float* y) {
  constexpr float kRootHalf = 0.70710678118654752f;
  for (int64_t i = 0; i < n; ++i) {
    const float x = gate[i];
    y[i] = Times((0.5f * x) * (1.0f + Erf(x * kRootHalf)), up, i);
  }
}

void ReluSquared(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    const float x = 0.0f > gate[i] ? 0.0f : gate[i];  // NaN stays
    y[i] = Times(x * x, up, i);
  }
}

void Softcap(const float* x, int64_t n, float cap, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = cap * Tanh(x[i] / cap);
}

void RopeInterleaved(float* x, const float* cos, const float* sin, int64_t pairs) {
  for (int64_t i = 0; i < pairs; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = std::fma(a, cos[i], -(b * sin[i]));
    x[2 * i + 1] = std::fma(b, cos[i], a * sin[i]);
  }
}

void RopeHalf(float* x, const float* cos, const float* sin, int64_t pairs) {
  for (int64_t i = 0; i < pairs; ++i) {
    const float a = x[i];
    const float b = x[i + pairs];
    x[i] = std::fma(a, cos[i], -(b * sin[i]));
    x[i + pairs] = std::fma(b, cos[i], a * sin[i]);
  }
}

}  // namespace sluice::kernels::scalar
