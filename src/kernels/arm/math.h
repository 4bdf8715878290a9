// The canonical reductions and elementary functions on NEON registers: the 16 virtual lanes as four
// registers, and the twins of base/math.cc, step for step as base/math_constants.h writes them down.
//
// Private to this folder; in an anonymous namespace, as formats.h.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/math_constants.h"

namespace sluice::kernels::arm {
namespace {

// Calls f.operator()<0>() … f.operator()<N − 1>(): what is indexed by such numbers stays in registers, where
// GCC makes memory of what loops fill from memory.
template <int N, typename F>
[[gnu::always_inline]] inline void Times(F f) {
  [&]<int... n>(std::integer_sequence<int, n...>) __attribute__((always_inline)) {
    (f.template operator()<n>(), ...);
  }
  (std::make_integer_sequence<int, N>());
}

// Sixteen floats: elements, or the lanes of a reduction (lane j is element j % 4 of v[j / 4]).
struct Sixteen {
  float32x4_t v[4];
};

inline Sixteen Zeros() { return {{vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)}}; }
inline Sixteen Load16Floats(const float* x) {
  return {{vld1q_f32(x), vld1q_f32(x + 4), vld1q_f32(x + 8), vld1q_f32(x + 12)}};
}
// The first n < 16 of them, then zeros.
inline Sixteen LoadTail(const float* x, int64_t n) {
  float padded[16] = {};
  std::memcpy(padded, x, static_cast<size_t>(n) * sizeof(float));
  return Load16Floats(padded);
}
inline void StoreTail(const Sixteen& x, int64_t n, float* y) {
  float all[16];
  for (int i = 0; i < 4; ++i) vst1q_f32(all + 4 * i, x.v[i]);
  std::memcpy(y, all, static_cast<size_t>(n) * sizeof(float));
}

inline void AddProduct(Sixteen& lanes, const Sixteen& a, const Sixteen& b) {
  for (int i = 0; i < 4; ++i) lanes.v[i] = vfmaq_f32(lanes.v[i], a.v[i], b.v[i]);
}
inline void Add(Sixteen& lanes, const Sixteen& x) {
  for (int i = 0; i < 4; ++i) lanes.v[i] = vaddq_f32(lanes.v[i], x.v[i]);
}
// An order of the lanes in which each, once it is there, can be added to what waits for it: 0, 8, 4, 12, 2
// … 15.
constexpr int LaneToFold(int turn) {
  return (turn & 1) << 3 | (turn & 2) << 1 | (turn & 4) >> 1 | (turn & 8) >> 3;
}
// The lanes folded 8, 4, 2, 1.
inline float FoldLanes(const Sixteen& lanes) {
  const float32x4_t four = vaddq_f32(vaddq_f32(lanes.v[0], lanes.v[2]), vaddq_f32(lanes.v[1], lanes.v[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

template <int kTerms>
inline float32x4_t Horner(const float (&c)[kTerms], float32x4_t x) {
  float32x4_t p = vdupq_n_f32(c[kTerms - 1]);
  for (int i = kTerms - 2; i >= 0; --i) p = vfmaq_f32(vdupq_n_f32(c[i]), p, x);
  return p;
}

// `magnitude` (its sign bit clear) with the sign bit of `sign`.
inline float32x4_t WithSign(float32x4_t magnitude, float32x4_t sign) {
  const uint32x4_t bit = vandq_u32(vreinterpretq_u32_f32(sign), vdupq_n_u32(0x80000000u));
  return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(magnitude), bit));
}

inline float32x4_t Exp4(float32x4_t x) {
  using namespace math_constants;
  const float32x4_t t = vfmaq_f32(vdupq_n_f32(kRoundMagic), x, vdupq_n_f32(kLog2E));
  const float32x4_t n = vsubq_f32(t, vdupq_n_f32(kRoundMagic));
  float32x4_t r = vfmaq_f32(x, n, vdupq_n_f32(-kLn2Hi));
  r = vfmaq_f32(r, n, vdupq_n_f32(-kLn2Lo));
  const uint32x4_t p = vreinterpretq_u32_f32(Horner(kExpPoly, r));
  float32x4_t y = vreinterpretq_f32_u32(vaddq_u32(p, vshlq_n_u32(vreinterpretq_u32_f32(t), 23)));
  y = vbslq_f32(vcleq_f32(x, vdupq_n_f32(kExpMax)), y, vaddq_f32(x, vdupq_n_f32(__builtin_inff())));
  return vbslq_f32(vcltq_f32(x, vdupq_n_f32(kExpMin)), vdupq_n_f32(0), y);
}

inline float32x4_t Tanh4(float32x4_t x) {
  using namespace math_constants;
  const float32x4_t one = vdupq_n_f32(1);
  const float32x4_t a = vabsq_f32(x);
  const float32x4_t large = vsubq_f32(one, vdivq_f32(vdupq_n_f32(2), vaddq_f32(Exp4(vaddq_f32(a, a)), one)));
  const float32x4_t z = vmulq_f32(a, a);
  const float32x4_t small = vfmaq_f32(a, vmulq_f32(a, z), Horner(kTanhPoly, z));
  return WithSign(vbslq_f32(vcgtq_f32(a, vdupq_n_f32(kTanhSplit)), large, small), x);
}

inline float32x4_t Erf4(float32x4_t x) {
  using namespace math_constants;
  const float32x4_t limit = vdupq_n_f32(kErfLimit);
  const float32x4_t a = vabsq_f32(x);
  const float32x4_t t = vbslq_f32(vcgtq_f32(a, limit), limit, a);
  const float32x4_t exponent = vnegq_f32(vfmaq_f32(t, t, Horner(kErfLargePoly, t)));
  const float32x4_t large = vsubq_f32(vdupq_n_f32(1), Exp4(exponent));
  const float32x4_t small = vfmaq_f32(a, a, Horner(kErfSmallPoly, vmulq_f32(a, a)));
  return WithSign(vbslq_f32(vcgtq_f32(a, vdupq_n_f32(kErfSplit)), large, small), x);
}

// Sixteen elements of a row of 16- or 32-bit floats, at any address, exactly as binary32.
struct FromF32 {
  static constexpr int kBytes = 4;
  static Sixteen Load(const std::byte* p) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(p);
    Sixteen x;
    for (int i = 0; i < 4; ++i) x.v[i] = vreinterpretq_f32_u8(vld1q_u8(bytes + 16 * i));
    return x;
  }
};
struct FromF16 {
  static constexpr int kBytes = 2;
  static Sixteen Load(const std::byte* p) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(p);
    const float16x8_t low = vreinterpretq_f16_u8(vld1q_u8(bytes));
    const float16x8_t high = vreinterpretq_f16_u8(vld1q_u8(bytes + 16));
    return {{vcvt_f32_f16(vget_low_f16(low)), vcvt_high_f32_f16(low), vcvt_f32_f16(vget_low_f16(high)),
             vcvt_high_f32_f16(high)}};
  }
};
struct FromBf16 {
  static constexpr int kBytes = 2;
  static Sixteen Load(const std::byte* p) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(p);
    const uint16x8_t low = vreinterpretq_u16_u8(vld1q_u8(bytes));
    const uint16x8_t high = vreinterpretq_u16_u8(vld1q_u8(bytes + 16));
    return {{vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(low), 16)),
             vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(low), 16)),
             vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(high), 16)),
             vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(high), 16))}};
  }
};
// The first n < 16 elements at p, then zeros.
template <typename Element>
inline Sixteen LoadElements(const std::byte* p, int64_t n) {
  std::byte padded[16 * Element::kBytes] = {};
  std::memcpy(padded, p, static_cast<size_t>(n) * Element::kBytes);
  return Element::Load(padded);
}

}  // namespace
}  // namespace sluice::kernels::arm
