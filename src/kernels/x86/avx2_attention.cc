#include "kernels/x86/attention_shared.h"
#include "kernels/x86/avx2.h"
#include "kernels/x86/isa_avx2.h"

namespace sluice::kernels::avx2 {
namespace {

// What attention needs beside.
struct Attention : Avx2 {
  static constexpr int kHeads = 4;

  static inline Lanes Subtract(Lanes a, Lanes b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  // b where one is NaN.
  static inline Lanes Max(Lanes a, Lanes b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  // Lane i from lane i ^ kDistance.
  template <int kDistance>
  static inline Lanes Swap(Lanes v) {
    if constexpr (kDistance == 8) return {v.high, v.low};
    if constexpr (kDistance == 4)
      return {_mm256_permute2f128_ps(v.low, v.low, 1), _mm256_permute2f128_ps(v.high, v.high, 1)};
    if constexpr (kDistance == 2) return {_mm256_permute_ps(v.low, 0x4e), _mm256_permute_ps(v.high, 0x4e)};
    if constexpr (kDistance == 1) return {_mm256_permute_ps(v.low, 0xb1), _mm256_permute_ps(v.high, 0xb1)};
  }
  // Lane i: the lanes of v[i] folded 8, 4, 2, 1.
  static inline Lanes FoldSixteen(const Lanes v[16]) {
    return {_mm256_set_m128(Fold(v + 4), Fold(v)), _mm256_set_m128(Fold(v + 12), Fold(v + 8))};
  }
  static inline Lanes Exp(Lanes x) { return {kernels::Exp(x.low), kernels::Exp(x.high)}; }
  // Half a block of nibbles, d · (n − 8) each.
  template <int kHalf>
  static inline Lanes LookUpNibbles(const formats::Byte* qs, float d) {
    return Multiply(FromI8(_mm_sub_epi8(HalfNibbles<kHalf>(qs), _mm_set1_epi8(8))), Set(d));
  }
};

}  // namespace

void AttentionTile(const AttentionTileArgs& args) { AttendTile<Attention>(args); }
void AttentionRows(const AttentionRowsArgs& args) { AttendRows<Attention>(AttentionTile, args); }
void AttentionScores(const AttentionTileArgs& args) { ScoreTile<Attention>(args); }

void AttentionMerge(float* o, float a, const float* chunk, float b, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(chunk + i), _mm256_set1_ps(b));
    _mm256_storeu_ps(o + i, _mm256_fmadd_ps(_mm256_loadu_ps(o + i), _mm256_set1_ps(a), scaled));
  }
  for (; i < n; ++i) o[i] = __builtin_fmaf(o[i], a, chunk[i] * b);
}

}  // namespace sluice::kernels::avx2
