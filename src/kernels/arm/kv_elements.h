// Sixteen elements of a KV row as floats, exactly, for each KV type (kv_rows.h), and the steps of attention
// that all its kernels share. Private to this folder; in an anonymous namespace, as formats.h.
#pragma once

#include "formats/blocks.h"
#include "kernels/arm/math.h"
#include "kernels/kernels.h"

namespace sluice::kernels::arm {
namespace {

constexpr int kSlots = kTileSlots;

// Sixteen elements of a row as floats, exactly, from j on, a multiple of 16.
template <typename Float>
struct FloatElement {
  static Sixteen Load(const std::byte* row, int64_t j) { return Float::Load(row + j * Float::kBytes); }
  // The last n < 16, filled up with zeros.
  static Sixteen LoadLast(const std::byte* row, int64_t j, int64_t n) {
    return LoadElements<Float>(row + j * Float::kBytes, n);
  }
};

inline Sixteen Scaled(formats::Half d, int8x16_t codes) {
  const uint16_t bits = d.bits();
  const float scale = vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits))), 0);
  const int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);
  const int32x4_t parts[4] = {vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low),
                              vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)};
  Sixteen x;
  for (int i = 0; i < 4; ++i) x.v[i] = vmulq_n_f32(vcvtq_f32_s32(parts[i]), scale);
  return x;
}
// Nibbles of the half (0 or 1) of a block.
inline uint8x16_t HalfNibbles(const formats::Byte* qs, int half) {
  return vandq_u8(vshlq_u8(vld1q_u8(qs), vdupq_n_s8(static_cast<int8_t>(-4 * half))), vdupq_n_u8(15));
}

inline Sixteen LoadHalf(const formats::BlockQ8_0& block, int half) {
  return Scaled(block.d, vld1q_s8(block.qs + 16 * half));
}
inline Sixteen LoadHalf(const formats::BlockQ5_0& block, int half) {
  const uint8x16_t bit_of = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
  const uint8x16_t bits = vcombine_u8(vdup_n_u8(block.qh[2 * half]), vdup_n_u8(block.qh[2 * half + 1]));
  const uint8x16_t bit4 = vandq_u8(vtstq_u8(bits, bit_of), vdupq_n_u8(16));
  const int8x16_t codes = vreinterpretq_s8_u8(vorrq_u8(HalfNibbles(block.qs, half), bit4));
  return Scaled(block.d, vsubq_s8(codes, vdupq_n_s8(16)));
}
inline Sixteen LoadHalf(const formats::BlockQ4_0& block, int half) {
  return Scaled(block.d, vsubq_s8(vreinterpretq_s8_u8(HalfNibbles(block.qs, half)), vdupq_n_s8(8)));
}

template <typename Block>
struct BlockElement {
  static Sixteen Load(const std::byte* row, int64_t j) {
    return LoadHalf(reinterpret_cast<const Block*>(row)[j / 32], static_cast<int>(j / 16 % 2));
  }
  // The block goes on behind the last n, and its scale may be negative: +0 is wanted, not −0.
  static Sixteen LoadLast(const std::byte* row, int64_t j, int64_t n) {
    float x[16];
    StoreTail(Load(row, j), 16, x);
    return LoadTail(x, n);
  }
};

// Calls f with an object of the element of `type`.
template <typename F>
void WithElement(KvType type, F f) {
  switch (type) {
    case KvType::kF32:
      return f(FloatElement<FromF32>());
    case KvType::kF16:
      return f(FloatElement<FromF16>());
    case KvType::kQ8_0:
      return f(BlockElement<formats::BlockQ8_0>());
    case KvType::kQ5_0:
      return f(BlockElement<formats::BlockQ5_0>());
    case KvType::kQ4_0:
      return f(BlockElement<formats::BlockQ4_0>());
  }
}

// A scaled dot product → a score, but for slopes.
inline float32x4_t Capped(float softcap, float32x4_t s) {
  const float32x4_t cap = vdupq_n_f32(softcap);
  return vmulq_f32(cap, Tanh4(vdivq_f32(s, cap)));
}

}  // namespace
}  // namespace sluice::kernels::arm
