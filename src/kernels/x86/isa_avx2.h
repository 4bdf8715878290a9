// The few operations in which AVX2 and AVX-512 VNNI differ, for the kernels that both share: integer ones,
// 256 bits wide in both, and the 16 float lanes of a reduction, which are two registers or one.
// isa_avx512vnni.h is the other one. Included only by files that are compiled for AVX2 or more; everything
// here has internal linkage, so that no code for one instruction set can be linked into another's callers.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

struct Avx2 {
  // acc + a · b, summed over pairs of int16.
  static inline __m256i MulAddPairs(__m256i acc, __m256i a, __m256i b) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
  }
  // Dot products of four neighbours, u unsigned up to 128.
  static inline __m256i DotUnsigned(__m256i u, __m256i x) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(u, x), _mm256_set1_epi16(1));
  }
  // The sum of two such, u up to 64.
  static inline __m256i DotUnsigned(__m256i u0, __m256i x0, __m256i u1, __m256i x1) {
    const __m256i p = _mm256_add_epi16(_mm256_maddubs_epi16(u0, x0), _mm256_maddubs_epi16(u1, x1));
    return _mm256_madd_epi16(p, _mm256_set1_epi16(1));
  }
  // The same for signed w, which may be −128 (|−128| is 128 as an unsigned byte). The result is too large by
  // kSignedExcess · Σ x.
  static constexpr int kSignedExcess = 0;
  static inline __m256i DotSigned(__m256i w, __m256i x) {
    return DotUnsigned(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  }
  static inline __m256i DotSigned(__m256i w0, __m256i x0, __m256i w1, __m256i x1) {
    return _mm256_add_epi32(DotSigned(w0, x0), DotSigned(w1, x1));
  }
  // a | (b & mask)
  static inline __m256i OrMasked(__m256i a, __m256i b, __m256i mask) {
    return _mm256_or_si256(a, _mm256_and_si256(b, mask));
  }
  // Byte i is `value` where bit i of `bits` is set, else 0.
  static inline __m256i SpreadBits(uint32_t bits, int8_t value) {
    const __m256i byte_of =
        _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit_of = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201ull));
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), byte_of);
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit_of), bit_of);
    return _mm256_and_si256(set, _mm256_set1_epi8(value));
  }

  // −v where bit i of `bits` is set.
  static inline __m256i Negate(__m256i v, uint32_t bits) {
    const __m256i negative = SpreadBits(bits, -1);
    return _mm256_sub_epi8(_mm256_xor_si256(v, negative), negative);
  }

  struct Lanes {
    __m256 low, high;
  };
  static inline Lanes Set(float v) { return {_mm256_set1_ps(v), _mm256_set1_ps(v)}; }
  static inline Lanes LoadF32(const void* p) {
    const float* f = static_cast<const float*>(p);
    return {_mm256_loadu_ps(f), _mm256_loadu_ps(f + 8)};
  }
  static inline Lanes LoadF16(const void* p) {
    const __m256i h = Load256(p);
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(h)), _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1))};
  }
  static inline Lanes LoadBf16(const void* p) {
    const __m256i h = Load256(p);
    const auto widen = [](__m128i v) {
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
    };
    return {widen(_mm256_castsi256_si128(h)), widen(_mm256_extracti128_si256(h, 1))};
  }
  // Sixteen signed bytes.
  static inline Lanes FromI8(__m128i v) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(v, 8)))};
  }
  static inline void Store(float* p, Lanes v) {
    _mm256_storeu_ps(p, v.low);
    _mm256_storeu_ps(p + 8, v.high);
  }
  static inline Lanes Add(Lanes a, Lanes b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static inline Lanes Multiply(Lanes a, Lanes b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static inline Lanes Fma(Lanes a, Lanes b, Lanes c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  // Folds 8, 4, 2, 1: one, or four at once.
  static inline __m256 Fold16To8(Lanes v) { return _mm256_add_ps(v.low, v.high); }
  static inline float Fold(Lanes v) { return Fold8(Fold16To8(v)); }
  static inline __m128 Fold(const Lanes v[4]) {
    return Fold8(Fold16To8(v[0]), Fold16To8(v[1]), Fold16To8(v[2]), Fold16To8(v[3]));
  }
  // Accumulators that the registers have room for, besides what is multiplied.
  static constexpr int kAccumulators = 4;
};

}  // namespace
}  // namespace sluice::kernels
