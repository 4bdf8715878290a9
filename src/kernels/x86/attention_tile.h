// One tile of attention (docs/arithmetic.md, section 5). Templates of internal linkage (isa_avx2.h).
#pragma once

#include "kernels/kernels.h"
#include "kernels/x86/float_products.h"
#include "kernels/x86/math256.h"

namespace sluice::kernels {
namespace {

// The dot products of q with four keys.
template <class Isa, class Element>
inline void DotKeys(const float* q, const std::byte* const k[4], int k_dim, float s[4]) {
  typename Isa::Lanes acc[4] = {Isa::Set(0.0f), Isa::Set(0.0f), Isa::Set(0.0f), Isa::Set(0.0f)};
  int j = 0;
  for (; j + 16 <= k_dim; j += 16) {
    const typename Isa::Lanes v = Isa::LoadF32(q + j);
    for (int i = 0; i < 4; ++i) {
      acc[i] = Isa::Fma(v, Element::template Load<Isa>(k[i] + j * Element::kBytes), acc[i]);
    }
  }
  if (j < k_dim) {
    const typename Isa::Lanes v = LoadLast<Isa, WeightF32>(reinterpret_cast<const std::byte*>(q + j), k_dim - j);
    for (int i = 0; i < 4; ++i) {
      acc[i] = Isa::Fma(v, LoadLast<Isa, Element>(k[i] + j * Element::kBytes, k_dim - j), acc[i]);
    }
  }
  for (int i = 0; i < 4; ++i) s[i] = Isa::Fold(acc[i]);
}

// Scores of the visible slots of head h, −infinity in the others.
template <class Isa, class Element>
inline void Scores(const AttentionTileArgs& args, int h, float s[64]) {
  for (int i = args.first; i < args.last; i += 4) {
    const std::byte* k[4];
    float group[4];
    for (int n = 0; n < 4; ++n) {  // a short group reads its last key again
      const int slot = i + n < args.last ? i + n : args.last - 1;
      k[n] = args.k + static_cast<size_t>(slot) * args.k_row_bytes;
    }
    DotKeys<Isa, Element>(args.q + h * args.q_stride, k, args.k_dim, group);
    for (int n = 0; n < 4 && i + n < args.last; ++n) s[i + n] = group[n];
  }
  const __m256 scale = _mm256_set1_ps(args.scale);
  const __m256 softcap = _mm256_set1_ps(args.softcap);
  for (int i = 0; i < 64; i += 8) {
    const __m256i slot = _mm256_add_epi32(_mm256_set1_epi32(i), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256 v = _mm256_mul_ps(_mm256_load_ps(s + i), scale);
    if (args.softcap > 0.0f) v = _mm256_mul_ps(softcap, Tanh(_mm256_div_ps(v, softcap)));
    if (args.alibi_slopes != nullptr) {
      alignas(32) float distance[8];
      for (int n = 0; n < 8; ++n) distance[n] = static_cast<float>(args.first_distance + (i + n - args.first));
      v = _mm256_fmadd_ps(_mm256_set1_ps(args.alibi_slopes[h]), _mm256_load_ps(distance), v);
    }
    const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(args.first), slot);
    const __m256i within = _mm256_cmpgt_epi32(_mm256_set1_epi32(args.last), slot);
    const __m256 visible = _mm256_castsi256_ps(_mm256_andnot_si256(before, within));
    _mm256_store_ps(s + i, _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), v, visible));
  }
}

// The largest of s[64] and m, NaNs passed over, −0 made +0.
inline float Maximum(const float s[64], float m) {
  __m256 v = _mm256_set1_ps(-__builtin_inff());
  for (int i = 0; i < 64; i += 8) v = _mm256_max_ps(_mm256_load_ps(s + i), v);  // the second operand when unordered
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, v);
  for (const float lane : lanes) m = lane > m ? lane : m;
  return m + 0.0f;
}

// o = o · c + Σ p · v over the visible slots, columns [j, j + 16 · N).
template <class Isa, class Element, int N>
inline void AddValues(const AttentionTileArgs& args, const float p[64], float c, int j, float* o) {
  typename Isa::Lanes acc[N];
  for (int n = 0; n < N; ++n) acc[n] = Isa::Multiply(Isa::LoadF32(o + j + 16 * n), Isa::Set(c));
  for (int i = args.first; i < args.last; ++i) {
    const std::byte* v = args.v + static_cast<size_t>(i) * args.v_row_bytes + j * Element::kBytes;
    const typename Isa::Lanes weight = Isa::Set(p[i]);
    for (int n = 0; n < N; ++n) {
      acc[n] = Isa::Fma(weight, Element::template Load<Isa>(v + 16 * n * Element::kBytes), acc[n]);
    }
  }
  for (int n = 0; n < N; ++n) Isa::Store(o + j + 16 * n, acc[n]);
}

// The last columns, fewer than 16.
template <class Isa, class Element>
inline void AddLastValues(const AttentionTileArgs& args, const float p[64], float c, int j, float* o) {
  const int64_t n = args.v_dim - j;
  alignas(64) float columns[16] = {};
  std::memcpy(columns, o + j, static_cast<size_t>(n) * sizeof(float));
  typename Isa::Lanes acc = Isa::Multiply(Isa::LoadF32(columns), Isa::Set(c));
  for (int i = args.first; i < args.last; ++i) {
    const std::byte* v = args.v + static_cast<size_t>(i) * args.v_row_bytes + j * Element::kBytes;
    acc = Isa::Fma(Isa::Set(p[i]), LoadLast<Isa, Element>(v, n), acc);
  }
  Isa::Store(columns, acc);
  std::memcpy(o + j, columns, static_cast<size_t>(n) * sizeof(float));
}

template <class Isa, class Element>
inline void AttentionTile(const AttentionTileArgs& args) {
  alignas(64) float p[64] = {};
  for (int h = 0; h < args.heads; ++h) {
    Scores<Isa, Element>(args, h, p);
    const float m = Maximum(p, args.m[h]);
    alignas(32) float change[8];
    _mm256_store_ps(change, Exp(_mm256_set1_ps(args.m[h] - m)));
    const float c = change[0];

    typename Isa::Lanes sum = Isa::Set(0.0f);
    for (int i = 0; i < 64; i += 16) {
      for (int n = i; n < i + 16; n += 8) {
        _mm256_store_ps(p + n, Exp(_mm256_sub_ps(_mm256_load_ps(p + n), _mm256_set1_ps(m))));
      }
      sum = Isa::Add(sum, Isa::LoadF32(p + i));
    }
    args.m[h] = m;
    args.l[h] = __builtin_fmaf(args.l[h], c, Isa::Fold(sum));

    float* o = args.o + static_cast<int64_t>(h) * args.v_dim;
    int j = 0;
    for (; j + 64 <= args.v_dim; j += 64) AddValues<Isa, Element, 4>(args, p, c, j, o);
    for (; j + 16 <= args.v_dim; j += 16) AddValues<Isa, Element, 1>(args, p, c, j, o);
    if (j < args.v_dim) AddLastValues<Isa, Element>(args, p, c, j, o);
  }
}

}  // namespace
}  // namespace sluice::kernels
