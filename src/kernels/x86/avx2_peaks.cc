// What AVX2 multiplies at best: VPMADDUBSW, VPMADDWD and VPADDD for bytes, VFMADD for floats.
#include "kernels/x86/avx2.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels::avx2 {

constexpr int kChains = 10;  // enough to hide the latency

int64_t Int8Peak(int64_t rounds) {
  const __m256i x = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
  __m256i acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = _mm256_set1_epi8(static_cast<char>(i));
  for (int64_t round = 0; round < rounds; ++round) {
    // The sums are factors too: a product of constants would be computed once.
    for (__m256i& a : acc) a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_maddubs_epi16(a, x), ones));
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm256_add_epi32(acc[0], acc[i]);
  volatile int sink = _mm256_extract_epi32(acc[0], 0);
  static_cast<void>(sink);
  return rounds * kChains * 32;
}

int64_t F32Peak(int64_t rounds) {
  const __m256 x = _mm256_set1_ps(0.5f);
  __m256 acc[kChains];
  for (__m256& a : acc) a = _mm256_setzero_ps();
  for (int64_t round = 0; round < rounds; ++round) {
    for (__m256& a : acc) a = _mm256_fmadd_ps(a, x, x);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm256_add_ps(acc[0], acc[i]);
  volatile float sink = Fold8(acc[0]);
  static_cast<void>(sink);
  return rounds * kChains * 8;
}

}  // namespace sluice::kernels::avx2
