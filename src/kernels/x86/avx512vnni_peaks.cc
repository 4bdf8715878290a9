// What AVX-512 VNNI multiplies at best: VPDPBUSD for bytes, VFMADD for floats.
#include "kernels/x86/avx512vnni.h"
#include "kernels/x86/isa_avx512vnni.h"

namespace sluice::kernels::avx512vnni {

constexpr int kChains = 16;  // enough to hide the latency

int64_t Int8Peak(int64_t rounds) {
  const __m512i x = _mm512_set1_epi8(3);
  __m512i acc[kChains];
  for (__m512i& a : acc) a = _mm512_setzero_si512();
  for (int64_t round = 0; round < rounds; ++round) {
    for (__m512i& a : acc) a = _mm512_dpbusd_epi32(a, x, x);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm512_add_epi32(acc[0], acc[i]);
  volatile int sink = _mm_cvtsi128_si32(_mm512_castsi512_si128(acc[0]));
  static_cast<void>(sink);
  return rounds * kChains * 64;
}

int64_t F32Peak(int64_t rounds) {
  const __m512 x = _mm512_set1_ps(0.5f);
  __m512 acc[kChains];
  for (__m512& a : acc) a = _mm512_setzero_ps();
  for (int64_t round = 0; round < rounds; ++round) {
    for (__m512& a : acc) a = _mm512_fmadd_ps(a, x, x);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm512_add_ps(acc[0], acc[i]);
  volatile float sink = Avx512Vnni::Fold(acc[0]);
  static_cast<void>(sink);
  return rounds * kChains * 16;
}

}  // namespace sluice::kernels::avx512vnni
