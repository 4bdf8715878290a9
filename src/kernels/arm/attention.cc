// One tile of attention (kernels.h; docs/arithmetic.md, section 5). Query heads that share the KV head are
// taken up to four at a time, so that each key and value is loaded and converted once for them.
#include "base/math.h"
#include "formats/blocks.h"
#include "kernels/arm/math.h"
#include "kernels/arm/neon.h"
#include "kernels/attention_rows.h"

namespace sluice::kernels::neon {
namespace {

using namespace arm;

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

// scores[h][i] = dot16(q[head + h], k[i]) for the visible slots.
template <typename Element, int kHeads>
void DotKeys(const AttentionTileArgs& args, int head, float (*scores)[kSlots]) {
  const float* q[kHeads];
  for (int h = 0; h < kHeads; ++h) q[h] = args.q + (head + h) * args.q_stride;
  for (int slot = args.first; slot < args.last; ++slot) {
    const std::byte* k = args.k + static_cast<size_t>(slot) * args.k_row_bytes;
    Sixteen lanes[kHeads];
    for (Sixteen& l : lanes) l = Zeros();
    int64_t i = 0;
    for (; i + 16 <= args.k_dim; i += 16) {
      const Sixteen key = Element::Load(k, i);
      for (int h = 0; h < kHeads; ++h) AddProduct(lanes[h], Load16Floats(q[h] + i), key);
    }
    if (i < args.k_dim) {
      const Sixteen key = Element::LoadLast(k, i, args.k_dim - i);
      for (int h = 0; h < kHeads; ++h) AddProduct(lanes[h], LoadTail(q[h] + i, args.k_dim - i), key);
    }
    for (int h = 0; h < kHeads; ++h) scores[h][slot] = FoldLanes(lanes[h]);
  }
}

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

// Dot products → scores: scaled, capped, with the slope of the head.
void FinishScores(const AttentionTileArgs& args, int head, float* p) {
  for (int i = 0; i < kSlots; i += 4) {
    float32x4_t s = vmulq_n_f32(vld1q_f32(p + i), args.scale);
    if (args.softcap > 0.0f) {
      const float32x4_t cap = vdupq_n_f32(args.softcap);
      s = vmulq_f32(cap, Tanh4(vdivq_f32(s, cap)));
    }
    vst1q_f32(p + i, s);
  }
  if (args.alibi_slopes != nullptr) {
    for (int i = args.first; i < args.last; ++i) {
      const auto distance = static_cast<float>(args.first_distance + (i - args.first));
      p[i] = __builtin_fmaf(args.alibi_slopes[head], distance, p[i]);
    }
  }
}

// The scores of query heads head … head + kHeads − 1, at the visible slots: computed, or from memory.
template <int kHeads>
void Scores(const AttentionTileArgs& args, int head, float (*scores)[kSlots]) {
  if (args.scores != nullptr) {
    for (int h = 0; h < kHeads; ++h) {
      const float* of_head = args.scores + (head + h) * kSlots;
      for (int i = args.first; i < args.last; ++i) scores[h][i] = of_head[i];
    }
    return;
  }
  WithElement(args.k_type, [&](auto element) { DotKeys<decltype(element), kHeads>(args, head, scores); });
  for (int h = 0; h < kHeads; ++h) FinishScores(args, head + h, scores[h]);
}

// Turns the scores of one head into weights p (0 at invisible slots), updates m and l; returns o's factor.
float Weights(const AttentionTileArgs& args, int head, float* p) {
  float m = args.m[head];
  for (int i = args.first; i < args.last; ++i) m = p[i] > m ? p[i] : m;  // passes over NaN
  m = m + 0.0f;
  const float c = Exp(args.m[head] - m);

  const float32x4_t m4 = vdupq_n_f32(m);
  for (int i = 0; i < kSlots; i += 4) vst1q_f32(p + i, Exp4(vsubq_f32(vld1q_f32(p + i), m4)));
  for (int i = 0; i < args.first; ++i) p[i] = 0.0f;
  for (int i = args.last; i < kSlots; ++i) p[i] = 0.0f;
  Sixteen sums = Zeros();
  for (int i = 0; i < kSlots; i += 16) Add(sums, Load16Floats(p + i));
  args.m[head] = m;
  args.l[head] = __builtin_fmaf(args.l[head], c, FoldLanes(sums));
  return c;
}

// o[h] = o[h] · c[h] + Σ p[h][i] · v[i] by ascending i, for elements j … j + count − 1, count ≤ 16.
template <typename Element, int kHeads>
inline void AddValues(const AttentionTileArgs& args, const float (*p)[kSlots], const float* c, float* o,
                      int j, int count) {
  Sixteen acc[kHeads];
  for (int h = 0; h < kHeads; ++h) {
    const float* of_head = o + static_cast<int64_t>(h) * args.v_dim + j;
    acc[h] = count == 16 ? Load16Floats(of_head) : LoadTail(of_head, count);
    for (float32x4_t& part : acc[h].v) part = vmulq_n_f32(part, c[h]);
  }
  const std::byte* v = args.v + static_cast<size_t>(args.first) * args.v_row_bytes;
  for (int i = args.first; i < args.last; ++i, v += args.v_row_bytes) {
    const Sixteen value = count == 16 ? Element::Load(v, j) : Element::LoadLast(v, j, count);
    for (int h = 0; h < kHeads; ++h) {
      for (int t = 0; t < 4; ++t) acc[h].v[t] = vfmaq_n_f32(acc[h].v[t], value.v[t], p[h][i]);
    }
  }
  for (int h = 0; h < kHeads; ++h) StoreTail(acc[h], count, o + static_cast<int64_t>(h) * args.v_dim + j);
}

// Calls f with the first head of a group and how many are in it, 4, 2 or 1.
template <typename F>
void ForEachGroup(int heads, F f) {
  int head = 0;
  for (; heads - head >= 4; head += 4) f.template operator()<4>(head);
  if (heads - head >= 2) {
    f.template operator()<2>(head);
    head += 2;
  }
  if (heads - head == 1) f.template operator()<1>(head);
}

// Query heads head … head + kHeads − 1.
template <int kHeads>
void Heads(const AttentionTileArgs& args, int head) {
  float p[kHeads][kSlots] = {};
  float c[kHeads];
  Scores<kHeads>(args, head, p);
  for (int h = 0; h < kHeads; ++h) c[h] = Weights(args, head + h, p[h]);
  float* o = args.o + static_cast<int64_t>(head) * args.v_dim;
  WithElement(args.v_type, [&](auto element) {
    for (int j = 0; j < args.v_dim; j += 16) {
      AddValues<decltype(element), kHeads>(args, p, c, o, j, args.v_dim - j < 16 ? args.v_dim - j : 16);
    }
  });
}

}  // namespace

void AttentionTile(const AttentionTileArgs& args) {
  ForEachGroup(args.heads, [&]<int kHeads>(int head) { Heads<kHeads>(args, head); });
}

void AttentionRows(const AttentionRowsArgs& args) { AttendRowByRow(AttentionTile, args); }

void AttentionScores(const AttentionTileArgs& args) {
  AttentionTileArgs computed = args;
  computed.scores = nullptr;
  ForEachGroup(args.heads, [&]<int kHeads>(int head) {
    float s[kHeads][kSlots] = {};
    Scores<kHeads>(computed, head, s);
    for (int h = 0; h < kHeads; ++h) {
      float* of_head = args.scores + (head + h) * kSlots;
      for (int i = args.first; i < args.last; ++i) of_head[i] = s[h][i];
    }
  });
}

void AttentionMerge(float* o, float a, const float* chunk, float b, int64_t n) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const float32x4_t scaled = vmulq_n_f32(vld1q_f32(chunk + i), b);
    vst1q_f32(o + i, vfmaq_n_f32(scaled, vld1q_f32(o + i), a));
  }
  for (; i < n; ++i) o[i] = __builtin_fmaf(o[i], a, chunk[i] * b);
}

}  // namespace sluice::kernels::neon
