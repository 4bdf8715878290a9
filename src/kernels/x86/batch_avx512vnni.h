// What batches need of AVX-512 VNNI: panels of 32 rows in two registers, tiles of 6 activation rows. See
// batch.h.
//
// Codes are unsigned, signed ones raised by 128. The sum of a group starts at −offset · Σ q, which makes it
// exact.
#pragma once

#include "kernels/x86/isa_avx512vnni.h"

namespace sluice::kernels {
namespace {

struct BatchAvx512Vnni {
  using Isa = Avx512Vnni;
  using I = __m512i;
  using F = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kRegisters = 2;
  static constexpr int kRows = 32;
  static constexpr int kColumns = 6;
  static constexpr bool kOffsetInGroups = true;  // AddGroup takes care of the offset of codes

  static inline I Set(int v) { return _mm512_set1_epi32(v); }
  static inline F Set(float v) { return _mm512_set1_ps(v); }
  static inline I Load(const int32_t* p) { return _mm512_loadu_si512(p); }
  static inline F Load(const float* p) { return _mm512_loadu_ps(p); }
  static inline void Store(int32_t* p, I v) { _mm512_storeu_si512(p, v); }
  static inline void Store(float* p, F v) { _mm512_storeu_ps(p, v); }
  static inline I Subtract(I a, I b) { return _mm512_sub_epi32(a, b); }
  static inline F Add(F a, F b) { return _mm512_add_ps(a, b); }
  static inline F ToFloat(I v) { return _mm512_cvtepi32_ps(v); }
  static inline F Multiply(F a, F b) { return _mm512_mul_ps(a, b); }
  static inline F Fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static inline F FmaNegative(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
  static inline I MulAddPairs(I acc, I a, I b) { return _mm512_dpwssd_epi32(acc, a, b); }
  // low | high << 16
  static inline I Pair(I low, I high) {
    return _mm512_mask_blend_epi16(0xaaaaaaaau, low, _mm512_slli_epi32(high, 16));
  }

  // Both int16 of each lane times v.
  static inline I MultiplyHalves(I halves, int v) {
    return _mm512_mullo_epi16(halves, _mm512_set1_epi16(static_cast<int16_t>(v)));
  }

  static inline void StoreRows(float* y, int n, const F v[kRegisters]) {
    const uint32_t mask = n >= kRows ? 0xffffffffu : (1u << n) - 1u;
    _mm512_mask_storeu_ps(y, static_cast<__mmask16>(mask), v[0]);
    _mm512_mask_storeu_ps(y + 16, static_cast<__mmask16>(mask >> 16), v[1]);
  }

  // isum[c] += scale · (the products of a group of kLength codes with activation row c). xsums: of 16
  // elements each.
  template <int C, class Codes, int kLength, bool kScaled>
  static inline void AddGroup(const uint8_t* codes, const int8_t* q, int64_t q_stride, const int16_t* xsums,
                              int64_t sums_stride, const int32_t* scales, I isum[C][kRegisters]) {
    constexpr int kOffset = Codes::kSigned ? Isa::kSignedExcess : Codes::kOffset;
    I p[C][kRegisters];
    for (int c = 0; c < C; ++c) {
      const int16_t* sums = xsums + c * sums_stride;
      const I start = kOffset == 0 ? _mm512_setzero_si512()
                                   : Set(-kOffset * (kLength == 16 ? sums[0] : sums[0] + sums[1]));
      p[c][0] = p[c][1] = start;
    }
    for (int s = 0; s < kLength / 4; ++s) {
      const I w0 = _mm512_loadu_si512(codes + s * (kRows * 4));
      const I w1 = _mm512_loadu_si512(codes + s * (kRows * 4) + 64);
      for (int c = 0; c < C; ++c) {
        int32_t four;
        std::memcpy(&four, q + c * q_stride + s * 4, sizeof(four));
        const I x = _mm512_set1_epi32(four);
        p[c][0] = _mm512_dpbusd_epi32(p[c][0], w0, x);
        p[c][1] = _mm512_dpbusd_epi32(p[c][1], w1, x);
      }
    }
    for (int h = 0; h < kRegisters; ++h) {
      for (int c = 0; c < C; ++c) {
        isum[c][h] =
            kScaled ? _mm512_add_epi32(isum[c][h], _mm512_mullo_epi32(p[c][h], Load(scales + h * kLanes)))
                    : p[c][h];
      }
    }
  }

  // 16 rows of `n` 32-bit items, `stride` bytes apart → n columns, `out_stride` bytes apart.
  static inline void Transpose(const void* rows, size_t stride, int n, void* columns, size_t out_stride) {
    const auto* in = static_cast<const uint8_t*>(rows);
    auto* out = static_cast<uint8_t*>(columns);
    for (int c = 0; c < n; c += 16) {
      I r[16];
      for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(in + static_cast<size_t>(i) * stride + c * 4);
      Transpose16(r);
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(out + static_cast<size_t>(c + i) * out_stride, r[i]);
    }
  }

 private:
  static inline void Transpose16(I r[16]) {
    I a[16], b[16];
    for (int i = 0; i < 16; i += 2) {
      a[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
      a[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
      b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
      b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
      b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
      b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    // b[4i + c] has in its 128-bit lane l column 4l + c of rows 4i … 4i + 3.
    for (int c = 0; c < 4; ++c) {
      const I even01 = _mm512_shuffle_i32x4(b[c], b[4 + c], 0x88);
      const I odd01 = _mm512_shuffle_i32x4(b[c], b[4 + c], 0xdd);
      const I even23 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0x88);
      const I odd23 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0xdd);
      r[c] = _mm512_shuffle_i32x4(even01, even23, 0x88);
      r[4 + c] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
      r[8 + c] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
      r[12 + c] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
    }
  }
};

}  // namespace
}  // namespace sluice::kernels
