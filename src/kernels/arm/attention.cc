// One tile of attention (kernels.h; docs/arithmetic.md, section 5). Query heads that share the KV head are
// taken up to four at a time, so that each key and value is loaded and converted once for them.
#include "base/math.h"
#include "kernels/arm/attention_shared.h"
#include "kernels/arm/kv_elements.h"
#include "kernels/arm/math.h"
#include "kernels/arm/neon.h"

namespace sluice::kernels::neon {
namespace {

using namespace arm;

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

// Dot products → scores: scaled, capped, with the slope of the head.
void FinishScores(const AttentionTileArgs& args, int head, float* p) {
  for (int i = 0; i < kSlots; i += 4) {
    const float32x4_t s = vmulq_n_f32(vld1q_f32(p + i), args.scale);
    vst1q_f32(p + i, args.softcap > 0.0f ? Capped(args.softcap, s) : s);
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

void AttentionRows(const AttentionRowsArgs& args) {
  if (IsWorthSharing(args, kSharing)) {
    ShareTile(args);
  } else {
    AttendRowByRow(AttentionTile, args);
  }
}

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
