#include "kernels/x86/attention_shared.h"
#include "kernels/x86/avx512vnni.h"
#include "kernels/x86/isa_avx512vnni.h"

namespace sluice::kernels::avx512vnni {
namespace {

// What attention needs beside.
struct Attention : Avx512Vnni {
  static constexpr int kHeads = 8;

  static inline Lanes Subtract(Lanes a, Lanes b) { return _mm512_sub_ps(a, b); }
  // b where one is NaN.
  static inline Lanes Max(Lanes a, Lanes b) { return _mm512_max_ps(a, b); }
  // Lane i from lane i ^ kDistance.
  template <int kDistance>
  static inline Lanes Swap(Lanes v) {
    if constexpr (kDistance == 8) return _mm512_shuffle_f32x4(v, v, 0x4e);
    if constexpr (kDistance == 4) return _mm512_shuffle_f32x4(v, v, 0xb1);
    if constexpr (kDistance == 2) return _mm512_permute_ps(v, 0x4e);
    if constexpr (kDistance == 1) return _mm512_permute_ps(v, 0xb1);
  }

  // Lane i: the lanes of v[i] folded 8, 4, 2, 1. At each level the halves of two registers are brought
  // together: what stays in its place is blended, what moves is permuted.
  static inline Lanes FoldSixteen(const Lanes v[16]) {
    const __m512i swap4 = _mm512_setr_epi64(2, 3, 8, 9, 6, 7, 12, 13);
    const __m512i swap1 = _mm512_setr_epi32(1, 16, 3, 18, 5, 20, 7, 22, 9, 24, 11, 26, 13, 28, 15, 30);
    Lanes a[8], b[4], c[2];
    for (int i = 0; i < 8; ++i) {
      const __m512i moved = _mm512_alignr_epi64(_mm512_castps_si512(v[i + 8]), _mm512_castps_si512(v[i]), 4);
      a[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xff00, v[i], v[i + 8]), _mm512_castsi512_ps(moved));
    }
    for (int i = 0; i < 4; ++i) {
      const __m512d moved = _mm512_permutex2var_pd(_mm512_castps_pd(a[i]), swap4, _mm512_castps_pd(a[i + 4]));
      b[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xf0f0, a[i], a[i + 4]), _mm512_castpd_ps(moved));
    }
    for (int i = 0; i < 2; ++i) {
      c[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xcccc, b[i], b[i + 2]),
                           _mm512_shuffle_ps(b[i], b[i + 2], 0x4e));
    }
    return _mm512_add_ps(_mm512_mask_blend_ps(0xaaaa, c[0], c[1]), _mm512_permutex2var_ps(c[0], swap1, c[1]));
  }

  // The canonical Exp: step for step that of base/math_constants.h.
  static inline Lanes Exp(Lanes x) {
    using namespace math_constants;
    const __m512 magic = _mm512_set1_ps(kRoundMagic);
    const __m512 t = _mm512_fmadd_ps(x, _mm512_set1_ps(kLog2E), magic);
    const __m512 n = _mm512_sub_ps(t, magic);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2Hi), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2Lo), r);
    constexpr int kTerms = std::size(kExpPoly);
    __m512 p = _mm512_set1_ps(kExpPoly[kTerms - 1]);
    for (int i = kTerms - 2; i >= 0; --i) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpPoly[i]));
    const __m512i power = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    const __m512 y = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), power));
    const __m512 above = _mm512_add_ps(x, _mm512_set1_ps(__builtin_inff()));
    const __mmask16 in_range = _mm512_cmp_ps_mask(x, _mm512_set1_ps(kExpMax), _CMP_LE_OQ);
    const __mmask16 not_below = _mm512_cmp_ps_mask(x, _mm512_set1_ps(kExpMin), _CMP_NLT_UQ);
    return _mm512_maskz_mov_ps(not_below, _mm512_mask_blend_ps(in_range, above, y));
  }

  // Half a block of nibbles, d · (n − 8) each.
  template <int kHalf>
  static inline Lanes LookUpNibbles(const formats::Byte* qs, float d) {
    const Lanes codes = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i bytes = _mm512_cvtepu8_epi32(Load128(qs));
    // The permutation looks at the four lowest bits.
    return _mm512_permutexvar_ps(kHalf == 0 ? bytes : _mm512_srli_epi32(bytes, 4), Multiply(codes, Set(d)));
  }
};

}  // namespace

void AttentionTile(const AttentionTileArgs& args) { AttendTile<Attention>(args); }
void AttentionRows(const AttentionRowsArgs& args) { AttendRows<Attention>(AttentionTile, args); }
void AttentionScores(const AttentionTileArgs& args) { ScoreTile<Attention>(args); }

}  // namespace sluice::kernels::avx512vnni
