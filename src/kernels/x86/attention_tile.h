// One tile of attention (docs/arithmetic.md, section 5), up to four query heads at a time, so that each key
// and value is loaded and widened once for all of them. Templates of internal linkage (isa_avx2.h).
#pragma once

#include "kernels/kernels.h"
#include "kernels/x86/kv_elements.h"
#include "kernels/x86/math256.h"

namespace sluice::kernels {
namespace {

constexpr int kSlots = kTileSlots;

// Scores or probabilities of H heads.
template <int H>
struct alignas(64) SlotValues {
  float head[H][kSlots];
};

// The dot products of H queries with the four keys from slot i on. A short group reads its last key again.
template <class Isa, class Element, int H>
inline void DotKeys(const AttentionTileArgs& args, const float* q, int i, SlotValues<H>& s) {
  constexpr int kKeys = 4;
  constexpr int kKeysAtOnce = Isa::kAccumulators / H < kKeys ? Isa::kAccumulators / H : kKeys;
  typename Isa::Lanes dots[H][kKeys];
  for (int first = 0; first < kKeys; first += kKeysAtOnce) {
    const std::byte* k[kKeysAtOnce];
    typename Isa::Lanes acc[H][kKeysAtOnce];
    for (int n = 0; n < kKeysAtOnce; ++n) {
      const int slot = i + first + n < args.last ? i + first + n : args.last - 1;
      k[n] = args.k + static_cast<size_t>(slot) * args.k_row_bytes;
      for (int h = 0; h < H; ++h) acc[h][n] = Isa::Set(0.0f);
    }
    // Columns j … j + 15, the half kHalf of a block of 32.
    const auto add = [&]<int kHalf>(int j) {
      for (int n = 0; n < kKeysAtOnce; ++n) {
        const typename Isa::Lanes key = Element::template Load<Isa, kHalf>(k[n], j);
        for (int h = 0; h < H; ++h)
          acc[h][n] = Isa::Fma(Isa::LoadF32(q + h * args.q_stride + j), key, acc[h][n]);
      }
    };
    int j = 0;
    for (; j + 32 <= args.k_dim; j += 32) {
      add.template operator()<0>(j);
      add.template operator()<1>(j + 16);
    }
    if (j + 16 <= args.k_dim) {
      add.template operator()<0>(j);
      j += 16;
    }
    if (j < args.k_dim) {
      for (int n = 0; n < kKeysAtOnce; ++n) {
        const typename Isa::Lanes key = LoadLastElements<Isa, Element>(k[n], j, args.k_dim - j);
        for (int h = 0; h < H; ++h) {
          const auto* rest = reinterpret_cast<const std::byte*>(q + h * args.q_stride);
          acc[h][n] = Isa::Fma(LoadLastElements<Isa, ElementF32>(rest, j, args.k_dim - j), key, acc[h][n]);
        }
      }
    }
    for (int h = 0; h < H; ++h) {
      for (int n = 0; n < kKeysAtOnce; ++n) dots[h][first + n] = acc[h][n];
    }
  }
  for (int h = 0; h < H; ++h) _mm_storeu_ps(s.head[h] + i, Isa::Fold(dots[h]));
}

// Dot products → scores: scaled, capped, with the slope of the head; −infinity in the slots that are not
// visible.
inline void FinishScores(const AttentionTileArgs& args, int head, float s[kSlots]) {
  const __m256 scale = _mm256_set1_ps(args.scale);
  const __m256 softcap = _mm256_set1_ps(args.softcap);
  for (int i = 0; i < kSlots; i += 8) {
    const __m256i slot = _mm256_add_epi32(_mm256_set1_epi32(i), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256 v = _mm256_mul_ps(_mm256_load_ps(s + i), scale);
    if (args.softcap > 0.0f) v = _mm256_mul_ps(softcap, Tanh(_mm256_div_ps(v, softcap)));
    if (args.alibi_slopes != nullptr) {
      alignas(32) float distance[8];
      for (int n = 0; n < 8; ++n)
        distance[n] = static_cast<float>(args.first_distance + (i + n - args.first));
      v = _mm256_fmadd_ps(_mm256_set1_ps(args.alibi_slopes[head]), _mm256_load_ps(distance), v);
    }
    const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(args.first), slot);
    const __m256i within = _mm256_cmpgt_epi32(_mm256_set1_epi32(args.last), slot);
    const __m256 visible = _mm256_castsi256_ps(_mm256_andnot_si256(before, within));
    _mm256_store_ps(s + i, _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), v, visible));
  }
}

// The largest of s and m, NaNs passed over, −0 made +0.
inline float Maximum(const float s[kSlots], float m) {
  __m256 v = _mm256_set1_ps(-__builtin_inff());
  for (int i = 0; i < kSlots; i += 8) {
    v = _mm256_max_ps(_mm256_load_ps(s + i), v);  // the second operand when unordered
  }
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, v);
  for (const float lane : lanes) m = lane > m ? lane : m;
  return m + 0.0f;
}

// Scores → probabilities; brings m and l of the head up to date. Returns what the output so far is multiplied
// by.
template <class Isa>
inline float Softmax(float* m, float* l, float s[kSlots]) {
  const float largest = Maximum(s, *m);
  const float change = _mm256_cvtss_f32(Exp(_mm256_set1_ps(*m - largest)));
  typename Isa::Lanes sum = Isa::Set(0.0f);
  for (int i = 0; i < kSlots; i += 16) {
    for (int n = i; n < i + 16; n += 8) {
      _mm256_store_ps(s + n, Exp(_mm256_sub_ps(_mm256_load_ps(s + n), _mm256_set1_ps(largest))));
    }
    sum = Isa::Add(sum, Isa::LoadF32(s + i));
  }
  *m = largest;
  *l = __builtin_fmaf(*l, change, Isa::Fold(sum));
  return change;
}

// o = o · change + Σ p · v over the visible slots, N · 16 columns from j on, for H heads. j lies in the half
// kHalf of its block of 32.
template <class Isa, class Element, int H, int N, int kHalf>
inline void AddValues(const AttentionTileArgs& args, const SlotValues<H>& p, const float change[H], int j,
                      float* o) {
  typename Isa::Lanes acc[H][N];
  for (int h = 0; h < H; ++h) {
    for (int n = 0; n < N; ++n) {
      acc[h][n] = Isa::Multiply(Isa::LoadF32(o + h * args.v_dim + j + 16 * n), Isa::Set(change[h]));
    }
  }
  for (int i = args.first; i < args.last; ++i) {
    const std::byte* row = args.v + static_cast<size_t>(i) * args.v_row_bytes;
    typename Isa::Lanes v[N];
    if constexpr (N == 1) {
      v[0] = Element::template Load<Isa, kHalf>(row, j);
    } else {
      for (int n = 0; n < N; n += 2) {
        v[n] = Element::template Load<Isa, 0>(row, j + 16 * n);
        v[n + 1] = Element::template Load<Isa, 1>(row, j + 16 * n + 16);
      }
    }
    for (int n = 0; n < N; ++n) {
      for (int h = 0; h < H; ++h) acc[h][n] = Isa::Fma(Isa::Set(p.head[h][i]), v[n], acc[h][n]);
    }
  }
  for (int h = 0; h < H; ++h) {
    for (int n = 0; n < N; ++n) Isa::Store(o + h * args.v_dim + j + 16 * n, acc[h][n]);
  }
}

// The last columns, fewer than 16, of one head.
template <class Isa, class Element>
inline void AddLastValues(const AttentionTileArgs& args, const float p[kSlots], float change, int j,
                          float* o) {
  const int64_t n = args.v_dim - j;
  alignas(64) float columns[16] = {};
  std::memcpy(columns, o + j, static_cast<size_t>(n) * sizeof(float));
  typename Isa::Lanes acc = Isa::Multiply(Isa::LoadF32(columns), Isa::Set(change));
  for (int i = args.first; i < args.last; ++i) {
    const std::byte* row = args.v + static_cast<size_t>(i) * args.v_row_bytes;
    acc = Isa::Fma(Isa::Set(p[i]), LoadLastElements<Isa, Element>(row, j, n), acc);
  }
  Isa::Store(columns, acc);
  std::memcpy(o + j, columns, static_cast<size_t>(n) * sizeof(float));
}

// The scores and the sums are two functions for each type, so that types combine without a kernel for each
// pair.
template <class Isa, class Element, int H>
[[gnu::noinline]] void DotAllKeys(const AttentionTileArgs& args, const float* q, SlotValues<H>& s) {
  for (int i = args.first; i < args.last; i += 4) {
    // The last group starts no later than slot 60, over again for slots that a group before it has done.
    DotKeys<Isa, Element, H>(args, q, i <= kSlots - 4 ? i : kSlots - 4, s);
  }
}

template <class Isa, class Element, int H>
[[gnu::noinline]] void AddAllValues(const AttentionTileArgs& args, const SlotValues<H>& p,
                                    const float change[H], float* o) {
  constexpr int N = Isa::kAccumulators / H < 4 ? Isa::kAccumulators / H : 4;
  int j = 0;
  if constexpr (N > 1) {
    for (; j + 16 * N <= args.v_dim; j += 16 * N) AddValues<Isa, Element, H, N, 0>(args, p, change, j, o);
  }
  for (; j + 32 <= args.v_dim; j += 32) {
    AddValues<Isa, Element, H, 1, 0>(args, p, change, j, o);
    AddValues<Isa, Element, H, 1, 1>(args, p, change, j + 16, o);
  }
  if (j + 16 <= args.v_dim) {
    AddValues<Isa, Element, H, 1, 0>(args, p, change, j, o);
    j += 16;
  }
  if (j == args.v_dim) return;
  for (int h = 0; h < H; ++h) AddLastValues<Isa, Element>(args, p.head[h], change[h], j, o + h * args.v_dim);
}

// Calls f with an object of the Element of `type`.
template <class F>
inline void WithElement(KvType type, F f) {
  switch (type) {
    case KvType::kF32:
      return f(ElementF32());
    case KvType::kF16:
      return f(ElementF16());
    case KvType::kQ8_0:
      return f(ElementQ8_0());
    case KvType::kQ5_0:
      return f(ElementQ5_0());
    case KvType::kQ4_0:
      return f(ElementQ4_0());
  }
}

// The scores of heads first … first + H − 1.
template <class Isa, int H>
inline void ScoreHeads(const AttentionTileArgs& args, int first, SlotValues<H>& s) {
  const float* const q = args.q + first * args.q_stride;
  WithElement(args.k_type, [&](auto element) { DotAllKeys<Isa, decltype(element), H>(args, q, s); });
  for (int h = 0; h < H; ++h) FinishScores(args, first + h, s.head[h]);
}

// The same from memory.
template <int H>
inline void LoadScores(const AttentionTileArgs& args, int first, SlotValues<H>& s) {
  for (int h = 0; h < H; ++h) {
    for (int i = 0; i < kSlots; ++i) s.head[h][i] = -__builtin_inff();
    const float* const scores = args.scores + (first + h) * kSlots;
    for (int i = args.first; i < args.last; ++i) s.head[h][i] = scores[i];
  }
}

// Heads first … first + H − 1.
template <class Isa, int H>
inline void AttendHeads(const AttentionTileArgs& args, int first) {
  SlotValues<H> p = {};
  if (args.scores == nullptr) {
    ScoreHeads<Isa, H>(args, first, p);
  } else {
    LoadScores<H>(args, first, p);
  }
  float change[H];
  for (int h = 0; h < H; ++h) change[h] = Softmax<Isa>(args.m + first + h, args.l + first + h, p.head[h]);
  float* const o = args.o + static_cast<int64_t>(first) * args.v_dim;
  WithElement(args.v_type,
              [&](auto element) { AddAllValues<Isa, decltype(element), H>(args, p, change, o); });
}

// The visible ones to memory.
template <class Isa, int H>
inline void StoreScores(const AttentionTileArgs& args, int first) {
  SlotValues<H> s = {};
  ScoreHeads<Isa, H>(args, first, s);
  for (int h = 0; h < H; ++h) {
    float* const scores = args.scores + (first + h) * kSlots;
    for (int i = args.first; i < args.last; ++i) scores[i] = s.head[h][i];
  }
}

// Calls f with the first head of a group and how many are in it, 4, 2 or 1.
template <class F>
inline void ForEachGroup(int heads, F f) {
  int h = 0;
  for (; h + 4 <= heads; h += 4) f.template operator()<4>(h);
  for (; h + 2 <= heads; h += 2) f.template operator()<2>(h);
  for (; h < heads; ++h) f.template operator()<1>(h);
}

template <class Isa>
inline void AttendTile(const AttentionTileArgs& args) {
  ForEachGroup(args.heads, [&]<int H>(int first) { AttendHeads<Isa, H>(args, first); });
}

template <class Isa>
inline void ScoreTile(const AttentionTileArgs& args) {
  ForEachGroup(args.heads, [&]<int H>(int first) { StoreScores<Isa, H>(args, first); });
}

}  // namespace
}  // namespace sluice::kernels
