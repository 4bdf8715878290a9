// Small helpers on 256-bit registers that all x86 kernels share. Internal linkage, see isa_avx2.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::kernels {
namespace {

inline __m128i Load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline __m256i Load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void Store256(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }

inline uint16_t LoadU16(const std::byte* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}
inline uint32_t LoadU32(const std::byte* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

// 16 bytes of nibbles → 32 codes: the low nibbles, then the high ones.
inline __m256i Nibbles(const std::byte* p) {
  const __m128i bytes = Load128(p);
  return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes), _mm256_set1_epi8(15));
}

// 16 bytes at a and 16 at b.
inline __m256i LoadPair(const void* a, const void* b) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(Load128(a)), Load128(b), 1);
}

// The sums over the 8 lanes of each of 8 registers, in their order.
inline __m256i SumEach(const __m256i v[8]) {
  const __m256i v03 = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
  const __m256i v47 = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
  return _mm256_add_epi32(_mm256_permute2x128_si256(v03, v47, 0x20),
                          _mm256_permute2x128_si256(v03, v47, 0x31));
}

// Four registers, each of four lanes of sum i and four of sum i + 4 → the 8 sums in order.
inline __m256i SumEachHalf(const __m256i v[4]) {
  return _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
}

// Folds 8 lanes: 4, 2, 1.
inline float Fold8(__m256 v) {
  __m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  a = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}

// The same for four registers at once.
inline __m128 Fold8(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 ab = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
  const __m256 cd = _mm256_add_ps(_mm256_permute2f128_ps(c, d, 0x20), _mm256_permute2f128_ps(c, d, 0x31));
  const __m256d abd = _mm256_castps_pd(ab), cdd = _mm256_castps_pd(cd);
  __m256 v = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(abd, cdd)),
                           _mm256_castpd_ps(_mm256_unpackhi_pd(abd, cdd)));  // a a c c | b b d d
  v = _mm256_add_ps(v, _mm256_movehdup_ps(v));
  return _mm256_castps256_ps128(_mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 4, 2, 6, 0, 4, 2, 6)));
}

inline float LoadHalf(const std::byte* p) { return _cvtsh_ss(LoadU16(p)); }

// The f16 at p, p + stride, … p + 7 · stride.
inline __m256 LoadHalves(const std::byte* p, size_t stride) {
  __m128i h = _mm_cvtsi32_si128(LoadU16(p));
  h = _mm_insert_epi16(h, LoadU16(p + stride), 1);
  h = _mm_insert_epi16(h, LoadU16(p + 2 * stride), 2);
  h = _mm_insert_epi16(h, LoadU16(p + 3 * stride), 3);
  h = _mm_insert_epi16(h, LoadU16(p + 4 * stride), 4);
  h = _mm_insert_epi16(h, LoadU16(p + 5 * stride), 5);
  h = _mm_insert_epi16(h, LoadU16(p + 6 * stride), 6);
  h = _mm_insert_epi16(h, LoadU16(p + 7 * stride), 7);
  return _mm256_cvtph_ps(h);
}

inline void PrefetchLines(const std::byte* p, int bytes) {
  for (int i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p + i), _MM_HINT_T1);
}

}  // namespace
}  // namespace sluice::kernels
