// The canonical Exp, Tanh and Erf on eight lanes: step for step those of base/math_constants.h. Internal
// linkage (isa_avx2.h).
#pragma once

#include <immintrin.h>

#include "base/math_constants.h"

namespace sluice::kernels {
namespace {

template <int n>
inline __m256 Horner(const float (&c)[n], __m256 x) {
  __m256 p = _mm256_set1_ps(c[n - 1]);
  for (int i = n - 2; i >= 0; --i) p = _mm256_fmadd_ps(p, x, _mm256_set1_ps(c[i]));
  return p;
}

inline __m256 Exp(__m256 x) {
  using namespace math_constants;
  const __m256 magic = _mm256_set1_ps(kRoundMagic);
  const __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(kLog2E), magic);
  const __m256 n = _mm256_sub_ps(t, magic);
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Hi), x);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Lo), r);
  const __m256i p = _mm256_castps_si256(Horner(kExpPoly, r));
  __m256 y = _mm256_castsi256_ps(_mm256_add_epi32(p, _mm256_slli_epi32(_mm256_castps_si256(t), 23)));
  const __m256 above = _mm256_add_ps(x, _mm256_set1_ps(__builtin_inff()));
  y = _mm256_blendv_ps(above, y, _mm256_cmp_ps(x, _mm256_set1_ps(kExpMax), _CMP_LE_OQ));
  return _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(kExpMin), _CMP_LT_OQ), y);
}

inline __m256 SignBit() { return _mm256_set1_ps(-0.0f); }
inline __m256 Absolute(__m256 x) { return _mm256_andnot_ps(SignBit(), x); }
// `magnitude`, whose sign bit is clear, with the sign bit of `sign`.
inline __m256 WithSign(__m256 magnitude, __m256 sign) {
  return _mm256_or_ps(magnitude, _mm256_and_ps(SignBit(), sign));
}

inline __m256 Tanh(__m256 x) {
  using namespace math_constants;
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 a = Absolute(x);
  const __m256 e = _mm256_add_ps(Exp(_mm256_add_ps(a, a)), one);
  const __m256 large = _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0f), e));
  const __m256 z = _mm256_mul_ps(a, a);
  const __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(a, z), Horner(kTanhPoly, z), a);
  const __m256 is_large = _mm256_cmp_ps(a, _mm256_set1_ps(kTanhSplit), _CMP_GT_OQ);
  return WithSign(_mm256_blendv_ps(small, large, is_large), x);
}

inline __m256 Erf(__m256 x) {
  using namespace math_constants;
  const __m256 a = Absolute(x);
  const __m256 limit = _mm256_set1_ps(kErfLimit);
  const __m256 t = _mm256_blendv_ps(a, limit, _mm256_cmp_ps(a, limit, _CMP_GT_OQ));
  const __m256 power = _mm256_fmadd_ps(t, Horner(kErfLargePoly, t), t);
  const __m256 large = _mm256_sub_ps(_mm256_set1_ps(1.0f), Exp(_mm256_xor_ps(SignBit(), power)));
  const __m256 z = _mm256_mul_ps(a, a);
  const __m256 small = _mm256_fmadd_ps(a, Horner(kErfSmallPoly, z), a);
  const __m256 is_large = _mm256_cmp_ps(a, _mm256_set1_ps(kErfSplit), _CMP_GT_OQ);
  return WithSign(_mm256_blendv_ps(small, large, is_large), x);
}

}  // namespace
}  // namespace sluice::kernels
