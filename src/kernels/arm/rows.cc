// Everything that works on one row of floats (docs/arithmetic.md, sections 3 and 6).
#include <bit>
#include <cmath>

#include "kernels/arm/math.h"
#include "kernels/arm/neon.h"

namespace sluice::kernels::neon {
namespace {

using namespace arm;

// Scales below the smallest normal float are taken as zero.
constexpr float kSmallestScale = 0x1p-126f;

// sums: one for each 16 elements.
void QuantizeBlock(const float* x, int length, int8_t* q, float* scale, int16_t* sums) {
  const uint32x4_t magnitude_bits = vdupq_n_u32(0x7fffffffu);
  uint32x4_t largest = vdupq_n_u32(0);
  for (int i = 0; i < length; i += 16) {
    const Sixteen v = Load16Floats(x + i);
    for (int j = 0; j < 4; ++j) {
      largest = vmaxq_u32(largest, vandq_u32(vreinterpretq_u32_f32(v.v[j]), magnitude_bits));
    }
  }
  const uint32_t amax_bits = vmaxvq_u32(largest);
  const bool finite = amax_bits < 0x7f800000u;
  const float d = std::bit_cast<float>(amax_bits) / 127.0f;
  if (!finite || d < kSmallestScale) {
    *scale = finite ? 0.0f : std::bit_cast<float>(0x7fc00000u);
    std::memset(q, 0, static_cast<size_t>(length));
    for (int g = 0; g < length / 16; ++g) sums[g] = 0;
    return;
  }
  *scale = d;
  const float32x4_t inverse = vdupq_n_f32(1.0f / d);
  for (int i = 0; i < length; i += 16) {
    const Sixteen v = Load16Floats(x + i);
    int32x4_t n[4];
    for (int j = 0; j < 4; ++j) n[j] = vcvtnq_s32_f32(vmulq_f32(v.v[j], inverse));
    const int16x8_t low = vmovn_high_s32(vmovn_s32(n[0]), n[1]);
    const int16x8_t high = vmovn_high_s32(vmovn_s32(n[2]), n[3]);
    vst1q_s8(q + i, vmovn_high_s16(vmovn_s16(low), high));
    sums[i / 16] = vaddvq_s16(vaddq_s16(low, high));
  }
}

// y = f(x) [· factor], four at a time. x, factor and y may be the same row.
template <typename Function>
inline void ForEach4(const float* x, const float* factor, int64_t n, float* y, Function f) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    float32x4_t v = f(vld1q_f32(x + i));
    if (factor != nullptr) v = vmulq_f32(v, vld1q_f32(factor + i));
    vst1q_f32(y + i, v);
  }
  if (i < n) {
    const int64_t rest = n - i;
    float32x4_t v = f(LoadTail(x + i, rest).v[0]);
    if (factor != nullptr) v = vmulq_f32(v, LoadTail(factor + i, rest).v[0]);
    StoreTail({{v}}, rest, y + i);
  }
}

}  // namespace

void QuantizeRow(ActivationKind kind, const float* x, int64_t columns, int8_t* q, float* scale,
                 int16_t* sums) {
  const int length = BlockLength(kind);
  for (int64_t i = 0; i < columns; i += length) {
    QuantizeBlock(x + i, length, q + i, scale + i / length, sums + i / 16);
  }
}

void F32ToF16Row(const float* x, int64_t n, uint16_t* y) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) vst1_u16(y + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
  if (i < n) {
    uint16_t rest[4];
    vst1_u16(rest, vreinterpret_u16_f16(vcvt_f16_f32(LoadTail(x + i, n - i).v[0])));
    std::memcpy(y + i, rest, static_cast<size_t>(n - i) * sizeof(uint16_t));
  }
}

void RmsNorm(const float* x, const float* weight, int64_t n, float eps, float* y) {
  Sixteen lanes = Zeros();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Sixteen v = Load16Floats(x + i);
    AddProduct(lanes, v, v);
  }
  if (i < n) {
    const Sixteen v = LoadTail(x + i, n - i);
    AddProduct(lanes, v, v);
  }
  const float r = 1.0f / std::sqrt(FoldLanes(lanes) / static_cast<float>(n) + eps);
  ForEach4(x, weight, n, y, [r](float32x4_t v) { return vmulq_n_f32(v, r); });
}

void LayerNorm(const float* x, const float* weight, const float* bias, int64_t n, float eps, float* y) {
  Sixteen sum = Zeros();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) Add(sum, Load16Floats(x + i));
  if (i < n) Add(sum, LoadTail(x + i, n - i));
  const float mean = FoldLanes(sum) / static_cast<float>(n);

  const float32x4_t mean4 = vdupq_n_f32(mean);
  Sixteen squares = Zeros();
  for (i = 0; i + 16 <= n; i += 16) {
    Sixteen v = Load16Floats(x + i);
    for (float32x4_t& part : v.v) part = vsubq_f32(part, mean4);
    AddProduct(squares, v, v);
  }
  if (i < n) {
    float centred[16] = {};
    for (int64_t j = i; j < n; ++j) centred[j - i] = x[j] - mean;
    const Sixteen v = Load16Floats(centred);
    AddProduct(squares, v, v);
  }
  const float r = 1.0f / std::sqrt(FoldLanes(squares) / static_cast<float>(n) + eps);
  ForEach4(x, weight, n, y, [=](float32x4_t v) { return vmulq_n_f32(vsubq_f32(v, mean4), r); });
  if (bias != nullptr) {
    for (i = 0; i + 4 <= n; i += 4) vst1q_f32(y + i, vaddq_f32(vld1q_f32(y + i), vld1q_f32(bias + i)));
    for (; i < n; ++i) y[i] = y[i] + bias[i];
  }
}

void Silu(const float* gate, const float* up, int64_t n, float* y) {
  ForEach4(gate, up, n, y,
           [](float32x4_t x) { return vdivq_f32(x, vaddq_f32(vdupq_n_f32(1), Exp4(vnegq_f32(x)))); });
}

void GeluTanh(const float* gate, const float* up, int64_t n, float* y) {
  ForEach4(gate, up, n, y, [](float32x4_t x) {
    const float32x4_t one = vdupq_n_f32(1);
    const float32x4_t cubic = vfmaq_f32(one, vmulq_n_f32(x, 0.044715f), x);
    const float32x4_t u = vmulq_f32(vmulq_n_f32(x, -1.5957691216057308f), cubic);
    return vdivq_f32(x, vaddq_f32(one, Exp4(u)));
  });
}

void GeluErf(const float* gate, const float* up, int64_t n, float* y) {
  ForEach4(gate, up, n, y, [](float32x4_t x) {
    const float32x4_t erf = Erf4(vmulq_n_f32(x, 0.70710678118654752f));
    return vmulq_f32(vmulq_n_f32(x, 0.5f), vaddq_f32(vdupq_n_f32(1), erf));
  });
}

void ReluSquared(const float* gate, const float* up, int64_t n, float* y) {
  ForEach4(gate, up, n, y, [](float32x4_t x) {
    const float32x4_t zero = vdupq_n_f32(0);
    const float32x4_t r = vbslq_f32(vcgtq_f32(zero, x), zero, x);  // NaN stays
    return vmulq_f32(r, r);
  });
}

void Softcap(const float* x, int64_t n, float cap, float* y) {
  ForEach4(x, nullptr, n, y, [cap](float32x4_t v) {
    const float32x4_t cap4 = vdupq_n_f32(cap);
    return vmulq_f32(cap4, Tanh4(vdivq_f32(v, cap4)));
  });
}

void RopeInterleaved(float* x, const float* cos, const float* sin, int64_t pairs) {
  int64_t i = 0;
  for (; i + 4 <= pairs; i += 4) {
    float32x4x2_t ab = vld2q_f32(x + 2 * i);
    const float32x4_t a = ab.val[0];
    const float32x4_t b = ab.val[1];
    const float32x4_t c = vld1q_f32(cos + i);
    const float32x4_t s = vld1q_f32(sin + i);
    ab.val[0] = vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c);
    ab.val[1] = vfmaq_f32(vmulq_f32(a, s), b, c);
    vst2q_f32(x + 2 * i, ab);
  }
  for (; i < pairs; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = std::fma(a, cos[i], -(b * sin[i]));
    x[2 * i + 1] = std::fma(b, cos[i], a * sin[i]);
  }
}

void RopeHalf(float* x, const float* cos, const float* sin, int64_t pairs) {
  int64_t i = 0;
  for (; i + 4 <= pairs; i += 4) {
    const float32x4_t a = vld1q_f32(x + i);
    const float32x4_t b = vld1q_f32(x + i + pairs);
    const float32x4_t c = vld1q_f32(cos + i);
    const float32x4_t s = vld1q_f32(sin + i);
    vst1q_f32(x + i, vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c));
    vst1q_f32(x + i + pairs, vfmaq_f32(vmulq_f32(a, s), b, c));
  }
  for (; i < pairs; ++i) {
    const float a = x[i];
    const float b = x[i + pairs];
    x[i] = std::fma(a, cos[i], -(b * sin[i]));
    x[i + pairs] = std::fma(b, cos[i], a * sin[i]);
  }
}

}  // namespace sluice::kernels::neon
