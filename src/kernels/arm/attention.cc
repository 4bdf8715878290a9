// One tile of attention (kernels.h; docs/arithmetic.md, section 5). Query heads that share the KV head are
// taken up to four at a time, so that each key and value is loaded and converted once for them.
#include "base/math.h"
#include "kernels/arm/math.h"
#include "kernels/arm/neon.h"

namespace sluice::kernels::neon {
namespace {

using namespace arm;

constexpr int kSlots = 64;

// scores[h][i] = dot16(q[head + h], k[i]) for the visible slots.
template <typename Element, int kHeads>
void Scores(const AttentionTileArgs& args, int head, float (*scores)[kSlots]) {
  const float* q[kHeads];
  for (int h = 0; h < kHeads; ++h) q[h] = args.q + (head + h) * args.q_stride;
  for (int slot = args.first; slot < args.last; ++slot) {
    const std::byte* k = args.k + static_cast<size_t>(slot) * args.k_row_bytes;
    Sixteen lanes[kHeads];
    for (Sixteen& l : lanes) l = Zeros();
    int64_t i = 0;
    for (; i + 16 <= args.k_dim; i += 16) {
      const Sixteen key = Element::Load(k + i * Element::kBytes);
      for (int h = 0; h < kHeads; ++h) AddProduct(lanes[h], Load16Floats(q[h] + i), key);
    }
    if (i < args.k_dim) {
      const Sixteen key = LoadElements<Element>(k + i * Element::kBytes, args.k_dim - i);
      for (int h = 0; h < kHeads; ++h) AddProduct(lanes[h], LoadTail(q[h] + i, args.k_dim - i), key);
    }
    for (int h = 0; h < kHeads; ++h) scores[h][slot] = FoldLanes(lanes[h]);
  }
}

// Turns the scores of one head into weights p (0 at invisible slots), updates m and l; returns o's factor.
float Weights(const AttentionTileArgs& args, int head, float* p) {
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
  const std::byte* v = args.v + static_cast<size_t>(args.first) * args.v_row_bytes + j * Element::kBytes;
  for (int i = args.first; i < args.last; ++i, v += args.v_row_bytes) {
    const Sixteen value = count == 16 ? Element::Load(v) : LoadElements<Element>(v, count);
    for (int h = 0; h < kHeads; ++h) {
      for (int t = 0; t < 4; ++t) acc[h].v[t] = vfmaq_n_f32(acc[h].v[t], value.v[t], p[h][i]);
    }
  }
  for (int h = 0; h < kHeads; ++h) StoreTail(acc[h], count, o + static_cast<int64_t>(h) * args.v_dim + j);
}

// Query heads head … head + kHeads − 1.
template <typename Element, int kHeads>
void Heads(const AttentionTileArgs& args, int head) {
  float p[kHeads][kSlots] = {};
  float c[kHeads];
  Scores<Element, kHeads>(args, head, p);
  for (int h = 0; h < kHeads; ++h) c[h] = Weights(args, head + h, p[h]);
  float* o = args.o + static_cast<int64_t>(head) * args.v_dim;
  for (int j = 0; j < args.v_dim; j += 16) {
    AddValues<Element, kHeads>(args, p, c, o, j, args.v_dim - j < 16 ? args.v_dim - j : 16);
  }
}

template <typename Element>
void AttentionTile(const AttentionTileArgs& args) {
  int head = 0;
  for (; args.heads - head >= 4; head += 4) Heads<Element, 4>(args, head);
  if (args.heads - head >= 2) {
    Heads<Element, 2>(args, head);
    head += 2;
  }
  if (args.heads - head == 1) Heads<Element, 1>(args, head);
}

}  // namespace

void AttentionTileF32(const AttentionTileArgs& args) { AttentionTile<FromF32>(args); }
void AttentionTileF16(const AttentionTileArgs& args) { AttentionTile<FromF16>(args); }

}  // namespace sluice::kernels::neon
