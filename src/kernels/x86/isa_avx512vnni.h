// The few operations in which AVX2 and AVX-512 VNNI differ: the AVX-512 VNNI side. See isa_avx2.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

struct Avx512Vnni {
  static inline __m256i MulAddPairs(__m256i acc, __m256i a, __m256i b) {
    return _mm256_dpwssd_epi32(acc, a, b);
  }
  static inline __m256i DotUnsigned(__m256i u, __m256i x) {
    return _mm256_dpbusd_epi32(_mm256_setzero_si256(), u, x);
  }
  static inline __m256i DotUnsigned(__m256i u0, __m256i x0, __m256i u1, __m256i x1) {
    return _mm256_dpbusd_epi32(DotUnsigned(u0, x0), u1, x1);
  }
  // w + 128 is unsigned.
  static constexpr int kSignedExcess = 128;
  static inline __m256i DotSigned(__m256i w, __m256i x) {
    return DotUnsigned(_mm256_xor_si256(w, _mm256_set1_epi8(-128)), x);
  }
  static inline __m256i DotSigned(__m256i w0, __m256i x0, __m256i w1, __m256i x1) {
    const __m256i flip = _mm256_set1_epi8(-128);
    return DotUnsigned(_mm256_xor_si256(w0, flip), x0, _mm256_xor_si256(w1, flip), x1);
  }
  static inline __m256i OrMasked(__m256i a, __m256i b, __m256i mask) {
    return _mm256_ternarylogic_epi32(a, b, mask, 0xf8);
  }
  static inline __m256i SpreadBits(uint32_t bits, int8_t value) {
    return _mm256_maskz_set1_epi8(bits, value);
  }
  static inline __m256i Negate(__m256i v, uint32_t bits) {
    return _mm256_mask_sub_epi8(v, bits, _mm256_setzero_si256(), v);
  }

  using Lanes = __m512;
  static inline Lanes Set(float v) { return _mm512_set1_ps(v); }
  static inline Lanes LoadF32(const void* p) { return _mm512_loadu_ps(p); }
  static inline Lanes LoadF16(const void* p) { return _mm512_cvtph_ps(Load256(p)); }
  static inline Lanes LoadBf16(const void* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(Load256(p)), 16));
  }
  // Sixteen signed bytes.
  static inline Lanes FromI8(__m128i v) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(v)); }
  static inline void Store(float* p, Lanes v) { _mm512_storeu_ps(p, v); }
  static inline Lanes Add(Lanes a, Lanes b) { return _mm512_add_ps(a, b); }
  static inline Lanes Multiply(Lanes a, Lanes b) { return _mm512_mul_ps(a, b); }
  static inline Lanes Fma(Lanes a, Lanes b, Lanes c) { return _mm512_fmadd_ps(a, b, c); }
  static inline __m256 Fold16To8(Lanes v) {
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
    return _mm256_add_ps(_mm512_castps512_ps256(v), high);
  }
  static inline float Fold(Lanes v) { return Fold8(Fold16To8(v)); }
  static inline __m128 Fold(const Lanes v[4]) {
    return Fold8(Fold16To8(v[0]), Fold16To8(v[1]), Fold16To8(v[2]), Fold16To8(v[3]));
  }
  static constexpr int kAccumulators = 16;
};

}  // namespace
}  // namespace sluice::kernels
