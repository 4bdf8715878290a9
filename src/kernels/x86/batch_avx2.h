// What batches need of AVX2: panels of 8 rows in one register, tiles of 4 activation rows. See batch.h.
//
// maddubs sums pairs of products in int16; as many steps are added there as cannot overflow before they are
// widened and scaled in one madd.
#pragma once

#include "kernels/x86/batch.h"
#include "kernels/x86/isa_avx2.h"

namespace sluice::kernels {
namespace {

struct BatchAvx2 {
  using Isa = Avx2;
  using I = __m256i;
  using F = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kRegisters = 1;
  static constexpr int kRows = 8;
  static constexpr int kColumns = 4;
  static constexpr bool kExactSums = false;
  static constexpr bool kHasTileLoops = false;
  template <class Format>
  static constexpr bool kFolds = false;
  template <class Format>
  static constexpr int kCentre = 0;
  template <class Format>
  static constexpr bool kWidens = false;

  static inline I Set(int v) { return _mm256_set1_epi32(v); }
  static inline F Set(float v) { return _mm256_set1_ps(v); }
  static inline I Load(const int32_t* p) { return Load256(p); }
  static inline F Load(const float* p) { return _mm256_loadu_ps(p); }
  static inline void Store(int32_t* p, I v) { Store256(p, v); }
  static inline void Store(float* p, F v) { _mm256_storeu_ps(p, v); }
  static inline I Subtract(I a, I b) { return _mm256_sub_epi32(a, b); }
  static inline F Add(F a, F b) { return _mm256_add_ps(a, b); }
  static inline F ToFloat(I v) { return _mm256_cvtepi32_ps(v); }
  static inline F Multiply(F a, F b) { return _mm256_mul_ps(a, b); }
  static inline F Fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static inline F FmaNegative(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
  static inline I MultiplyAddPairs(I acc, I a, I b) { return Isa::MulAddPairs(acc, a, b); }
  // low | high << 16
  static inline I Pair(I low, I high) { return _mm256_blend_epi16(low, _mm256_slli_epi32(high, 16), 0xaa); }

  // Both int16 of each lane times v.
  static inline I MultiplyHalves(I halves, int v) {
    return _mm256_mullo_epi16(halves, _mm256_set1_epi16(static_cast<int16_t>(v)));
  }

  static inline void StoreRows(float* y, int n, const F v[kRegisters]) {
    const I index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_maskstore_ps(y, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), index), v[0]);
  }

  // Pairs of the same scale, as AddGroup wants it.
  template <class Format>
  static inline I PanelScale(I scale) {
    return Pair(scale, scale);
  }

  template <class Format>
  static inline void SetStarts(const int8_t*, const int16_t*, int, const bool*, int32_t*) {}

  // The sums of block k of a super-block format with C activation rows, of codes as they are stored →
  // scratch.isum.
  template <int C, class Format>
  static inline void BlockSums(const PanelScratch<kRows>& scratch, int k, const TileInput& x) {
    const uint8_t* const codes = scratch.codes + static_cast<size_t>(k) * 256 * kRows;
    const int32_t* const scales = scratch.scales + static_cast<size_t>(k) * 16 * kRows;
    I isum[C][kRegisters];
    for (int c = 0; c < C; ++c) isum[c][0] = _mm256_setzero_si256();
    for (int g = 0; g < Format::kGroups; ++g) {
      const int first = g * Format::kGroupLength;
      AddGroup<C, Format, Format::kGroupLength>(codes + first * kRows, x.q + k * 256 + first, x.q_stride,
                                                Load(scales + g * kRows), isum);
    }
    for (int c = 0; c < C; ++c) Store(scratch.isum + c * kRows, isum[c][0]);
  }

  // Adds to the integer sums of a block of kLength what codes as they are stored give.
  template <int C, class Format, int kLength = 32>
  static inline void SmallBlockSums(const uint8_t* codes, const int8_t* q, int64_t q_stride,
                                    I isum[C][kRegisters]) {
    AddGroup<C, Format, kLength>(codes, q, q_stride, _mm256_set1_epi16(1), isum);
  }

  // acc[h] += w[h] · *x
  template <int kCount>
  static inline void MultiplyAdd(F acc[kCount], const F w[kCount], const float* x) {
    F v;
    asm("vbroadcastss %1, %0" : "=x"(v) : "m"(*x));
    for (int h = 0; h < kCount; ++h) asm("vfmadd231ps %2, %1, %0" : "+x"(acc[h]) : "x"(w[h]), "x"(v));
  }

  // 8 rows of `n` 32-bit items, `stride` bytes apart → n columns; column(c) is where column c goes.
  template <class Column>
  static inline void Transpose(const void* rows, size_t stride, int n, Column column) {
    const auto* in = static_cast<const uint8_t*>(rows);
    for (int c = 0; c < n; c += 8) {
      I r[8];
      for (int i = 0; i < 8; ++i) r[i] = Load256(in + static_cast<size_t>(i) * stride + c * 4);
      Transpose8(r);
      for (int i = 0; i < 8; ++i) Store256(column(c + i), r[i]);
    }
  }

 private:
  // isum[c] += scale · (the products of a group of kLength codes with activation row c).
  template <int C, class Codes, int kLength>
  static inline void AddGroup(const uint8_t* codes, const int8_t* q, int64_t q_stride, I scale,
                              I isum[C][kRegisters]) {
    constexpr int kSteps = kLength / 4;
    constexpr int kFit = 32767 / (2 * 127 * Codes::kMaxCode);
    constexpr int kRun = kFit < kSteps ? kFit : kSteps;
    for (int first = 0; first < kSteps; first += kRun) {
      I p[C];
      for (int s = first; s < first + kRun && s < kSteps; ++s) {
        const I w = Load256(codes + s * (kRows * 4));
        for (int c = 0; c < C; ++c) {
          int32_t four;
          std::memcpy(&four, q + c * q_stride + s * 4, sizeof(four));
          const I x = _mm256_set1_epi32(four);
          const I product = Codes::kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
                                           : _mm256_maddubs_epi16(w, x);
          p[c] = s == first ? product : _mm256_add_epi16(p[c], product);
        }
      }
      for (int c = 0; c < C; ++c) isum[c][0] = Isa::MulAddPairs(isum[c][0], p[c], scale);
    }
  }

  static inline void Transpose8(I r[8]) {
    I a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
      a[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
      a[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
      b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
      b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
      b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
      b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    for (int c = 0; c < 4; ++c) {
      r[c] = _mm256_permute2x128_si256(b[c], b[4 + c], 0x20);
      r[4 + c] = _mm256_permute2x128_si256(b[c], b[4 + c], 0x31);
    }
  }
};

}  // namespace
}  // namespace sluice::kernels
