// What batches need of AVX-512 VNNI: panels of 32 rows in two registers, tiles of 7 activation rows. See
// batch.h.
//
// Codes are unsigned, signed ones raised by 128.
#pragma once

#include "kernels/x86/batch.h"
#include "kernels/x86/isa_avx512vnni.h"
#include "kernels/x86/tile_avx512vnni.h"

namespace sluice::kernels {
namespace {

// How the codes of a super-block format become integer sums. In order of preference:
//   folded   codes are multiplied by their scales while the panel is unpacked, where the products fit a byte;
//   halves   sums of runs of kRun elements fit int16: one VPDPWSSD multiplies by the scale and adds up;
//   else     sums of whole groups are multiplied in 32 bits, which costs three times as much.
// Each sum starts at −kOffset · Σ q of its run. That makes it exact for unsigned codes that are too large by
// an offset; others are centred so, where runs would be shorter than 16, and what is missing is added for the
// whole block.
template <class Format>
struct VnniPlan {
  static constexpr bool kFolded = requires { Format::kFoldedOffset; };
  static constexpr int kCentre = Format::kGroups == 8 && !Format::kSigned && !kFolded &&
                                         Format::kOffset == 0 && 127 * 16 * Format::kMaxCode > 32767
                                     ? (Format::kMaxCode + 1) / 2
                                     : 0;
  static constexpr int kOffset = [] {
    if constexpr (kFolded) return Format::kFoldedOffset;
    return Format::kSigned ? Avx512Vnni::kSignedExcess : Format::kOffset + kCentre;
  }();
  // Most elements whose sum fits int16.
  static constexpr int kFit = [] {
    const int below = Format::kSigned ? 0 : Format::kOffset + kCentre;
    const int above = Format::kMaxCode - below;
    return 32767 / (127 * (below > above ? below : above));
  }();
  static constexpr bool kHalves = !kFolded && kFit >= 8;
  static constexpr int kRun = [] {
    if (kFolded) return 256;
    if (!kHalves || kFit >= Format::kGroupLength) return Format::kGroupLength;
    return kFit >= 16 ? 16 : 8;
  }();

  // Where kRun is shorter than a group: the sums of whole groups fit int16 as well, codes not centred, for
  // activations that reach no further than kWideReach. Nearly all blocks of a model's do.
  static constexpr bool kWidens = kHalves && kRun < Format::kGroupLength;
  static constexpr int kWideOffset = kOffset - kCentre;
  static constexpr int kWideReach = [] {
    const int below = Format::kSigned ? 0 : kWideOffset;
    const int above = Format::kMaxCode - below;
    return 32767 / (below > above ? below : above);
  }();
  // What runs of 32 reach is known for each sign alone, which is enough for unsigned codes.
  static_assert(!kWidens || Format::kGroupLength == 16 || kWideOffset == 0);
};

struct BatchAvx512Vnni {
  using Isa = Avx512Vnni;
  using I = __m512i;
  using F = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kRegisters = 2;
  static constexpr int kRows = kTileRows;
  static constexpr int kColumns = kTileColumns;
  static constexpr bool kHasTileLoops = true;  // FinishBlock and AddTileChain, for full tiles
  static constexpr bool kExactSums = true;  // block sums are free of the offset of codes
  template <class Format>
  static constexpr bool kFolds = VnniPlan<Format>::kFolded;
  template <class Format>
  static constexpr int kCentre = VnniPlan<Format>::kCentre;
  template <class Format>
  static constexpr bool kWidens = VnniPlan<Format>::kWidens;

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
  // low | high << 16
  static inline I Pair(I low, I high) {
    return _mm512_mask_blend_epi16(0xaaaaaaaau, low, _mm512_slli_epi32(high, 16));
  }

  // What BlockSums wants of a scale: with halves, a pair of it and 0.
  template <class Format>
  static inline I PanelScale(I scale) {
    return VnniPlan<Format>::kHalves ? _mm512_and_si512(scale, Set(0xffff)) : scale;
  }

  // 256 codes → (code − kOffset) · scale + kFoldedOffset, modulo 256 at every step: the result fits a byte.
  // scales: 16.
  template <class Format>
  static inline void FoldScales(uint8_t* codes, const int32_t* scales) {
    const I all = Load(scales);
    const __m256i lanes = _mm256_setr_epi16(0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2);
    const I first =
        _mm512_inserti64x4(_mm512_castsi256_si512(lanes), _mm256_add_epi16(lanes, _mm256_set1_epi16(4)), 1);
    for (int i = 0; i < 4; ++i) {
      const I scale = _mm512_permutexvar_epi16(
          _mm512_add_epi16(first, _mm512_set1_epi16(static_cast<int16_t>(8 * i))), all);
      const I code = _mm512_sub_epi8(_mm512_loadu_si512(codes + 64 * i), _mm512_set1_epi8(Format::kOffset));
      const I even = _mm512_mullo_epi16(code, scale);
      const I odd = _mm512_slli_epi16(_mm512_mullo_epi16(_mm512_srli_epi16(code, 8), scale), 8);
      const I product = _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaaull, even, odd);
      _mm512_storeu_si512(codes + 64 * i, _mm512_add_epi8(product, _mm512_set1_epi8(Format::kFoldedOffset)));
    }
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

  // Whether the sums of whole groups of block k fit with all activation rows of a full tile.
  template <class Format>
  static inline bool FitsWide(const TileInput& x, int k) {
    if (x.reach == nullptr) return false;
    for (int c = 0; c < kColumns; ++c) {
      const Reach& reach = x.reach[c * x.reach_stride + k];
      if ((Format::kGroupLength == 16 ? reach.of_16 : reach.of_32) > VnniPlan<Format>::kWideReach)
        return false;
    }
    return true;
  }

  // What the integer sums of `blocks` blocks start at, for one activation row. wide: as FitsWide found.
  template <class Format>
  static inline void SetStarts(const int8_t* q, const int16_t* sums, int blocks, const bool* wide,
                               int32_t* starts) {
    using Plan = VnniPlan<Format>;
    if constexpr (Plan::kOffset == 0) return;
    for (int k = 0; k < blocks; ++k, q += 256, sums += 16, starts += kStartsOfBlock<Format>) {
      if (!Plan::kWidens || !wide[k]) {
        SetStartsOfBlock<Plan::kRun>(q, sums, -Plan::kOffset, starts);
      } else if constexpr (Plan::kWideOffset != 0) {
        SetStartsOfBlock<Format::kGroupLength>(q, sums, -Plan::kWideOffset, starts);
      }
    }
  }

  // Whether FinishBlock does block k.
  template <class Format>
  static inline bool Finishes(const PanelScratch<kRows>& scratch, int k) {
    return kCentre<Format> == 0 || (kWidens<Format> && scratch.wide[k]);
  }

  // Block k of a super-block format with a full tile: sums [kColumns, kRows] += its products, but for
  // minimums.
  template <class Format>
  static inline void FinishBlock(const PanelScratch<kRows>& scratch, int k, const TileInput& x, float* sums) {
    const TileSums to = {sums, scratch.d + k * kRows, scratch.x_scales + k};
    if constexpr (kWidens<Format>) {
      if (scratch.wide[k]) return TileBlock<Format, Format::kGroupLength>(scratch, k, x, to);
    }
    if constexpr (kCentre<Format> == 0) TileBlock<Format>(scratch, k, x, to);
  }

  // The integer sums of block k of a super-block format with C activation rows → scratch.isum.
  // A function of its own, so that nothing else competes for the registers.
  template <int C, class Format>
  [[gnu::noinline]] static void BlockSums(const PanelScratch<kRows>& scratch, int k, const TileInput& x) {
    using Plan = VnniPlan<Format>;
    if constexpr (C == kTileColumns) return TileBlock<Format>(scratch, k, x, scratch.isum);
    constexpr int kApart = PanelScratch<kRows>::kApart;
    const uint8_t* const codes = scratch.codes + static_cast<size_t>(k) * 256 * kRows;
    const int32_t* scales = scratch.scales + static_cast<size_t>(k) * 16 * kRows;
    const int32_t* const starts = scratch.starts + k * kStartsOfBlock<Format>;
    const int8_t* const q = x.q + k * 256;
    I sum[C][kRegisters];
    for (int c = 0; c < C; ++c) sum[c][0] = sum[c][1] = _mm512_setzero_si512();
    constexpr int kGroupLength = Plan::kFolded ? 256 : Format::kGroupLength;
    for (int group = 0; group < 256; group += kGroupLength, scales += kRows) {
      for (int first = group; first < group + kGroupLength; first += Plan::kRun) {
        I p[C][kRegisters];
        for (int c = 0; c < C; ++c) {
          p[c][0] = p[c][1] = Plan::kOffset == 0
                                  ? _mm512_setzero_si512()
                                  : Set(starts[c * kApart + first / Plan::kRun * kStartStep<Plan::kRun>]);
        }
        Dot<C, Plan::kRun / 4>(codes + first * kRows, q + first, x.q_stride, p);
        for (int h = 0; h < kRegisters; ++h) {
          for (int c = 0; c < C; ++c) {
            if constexpr (Plan::kFolded) {
              sum[c][h] = p[c][h];
            } else if constexpr (Plan::kHalves) {
              sum[c][h] = MultiplyAddPairs(sum[c][h], p[c][h], Load(scales + h * kLanes));
            } else {
              sum[c][h] = _mm512_add_epi32(sum[c][h], _mm512_mullo_epi32(p[c][h], Load(scales + h * kLanes)));
            }
          }
        }
      }
    }
    for (int c = 0; c < C; ++c) {
      for (int h = 0; h < kRegisters; ++h) Store(scratch.isum + c * kRows + h * kLanes, sum[c][h]);
    }
  }

  // Adds to the integer sums of a block of kLength what codes as they are stored give.
  template <int C, class Format, int kLength = 32>
  static inline void SmallBlockSums(const uint8_t* codes, const int8_t* q, int64_t q_stride,
                                    I isum[C][kRegisters]) {
    Dot<C, kLength / 4>(codes, q, q_stride, isum);
  }

  // `blocks` blocks of 32 of a chain with a full tile, from what comes first of each: tile_avx512vnni.h.
  template <int kApart, int kSumsApart>
  static inline void AddTileChain(const uint8_t* codes, const int8_t* q, int64_t q_stride, const float* d,
                                  const int32_t* starts, const float* scales, int64_t blocks, float* sums) {
    AddChain<kApart, kSumsApart>(codes, {q, q_stride}, d, starts, scales, blocks, sums);
  }

  // In assembly: GCC 12 copies every accumulator of its intrinsics twice for each turn of a loop, and moves
  // broadcasts far ahead, which takes all registers.
  // acc + a · b, summed over pairs of int16.
  static inline I MultiplyAddPairs(I acc, I a, I b) {
    asm("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
  }

  // acc[h] += w[h] · *x
  template <int kCount>
  static inline void MultiplyAdd(F acc[kCount], const F w[kCount], const float* x) {
    F v;
    asm("vbroadcastss %1, %0" : "=v"(v) : "m"(*x));
    for (int h = 0; h < kCount; ++h) asm("vfmadd231ps %2, %1, %0" : "+v"(acc[h]) : "v"(w[h]), "v"(v));
  }

  // 16 rows of `n` 32-bit items, `stride` bytes apart → n columns; column(c) is where column c goes.
  template <class Column>
  static inline void Transpose(const void* rows, size_t stride, int n, Column column) {
    const auto* in = static_cast<const uint8_t*>(rows);
    for (int c = 0; c < n; c += 16) {
      I r[16];
      for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(in + static_cast<size_t>(i) * stride + c * 4);
      Transpose16(r);
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(column(c + i), r[i]);
    }
  }

 private:
  // p += the products of 4 · kSteps codes of each row with C activation rows. Inlined whatever GCC makes of
  // the size of the file: as a call, it would take the sums through memory.
  template <int C, int kSteps>
  [[gnu::always_inline]] static inline void Dot(const uint8_t* codes, const int8_t* q, int64_t q_stride,
                                                I p[C][kRegisters]) {
    constexpr int kUnrolled = kSteps < 4 ? kSteps : 4;
    const int8_t* row[C];
    for (int c = 0; c < C; ++c) row[c] = q + c * q_stride;
    for (int first = 0; first < kSteps; first += kUnrolled, codes += kUnrolled * kRows * 4) {
      for (int s = 0; s < kUnrolled; ++s) {
        const I w0 = _mm512_load_si512(codes + s * (kRows * 4));
        const I w1 = _mm512_load_si512(codes + s * (kRows * 4) + 64);
        for (int c = 0; c < C; ++c) MultiplyAddBytes(p[c], w0, w1, row[c] + s * 4);
      }
      for (int c = 0; c < C; ++c) row[c] += kUnrolled * 4;
    }
  }

  // p[h] += the products of four codes of each row, unsigned, with four activations.
  static inline void MultiplyAddBytes(I p[kRegisters], I w0, I w1, const int8_t* q) {
    I p0 = p[0], p1 = p[1], x;
    asm("vpbroadcastd %3, %2\n\tvpdpbusd %2, %4, %0\n\tvpdpbusd %2, %5, %1"
        : "+v"(p0), "+v"(p1), "=&v"(x)
        : "m"(*reinterpret_cast<const int8_t(*)[4]>(q)), "v"(w0), "v"(w1));
    p[0] = p0;
    p[1] = p1;
  }

  // With a full tile, to isum or to TileSums.
  template <class Format, int kRun = VnniPlan<Format>::kRun, class To>
  static inline void TileBlock(const PanelScratch<kRows>& scratch, int k, const TileInput& x, To to) {
    using Plan = VnniPlan<Format>;
    constexpr int kApart = PanelScratch<kRows>::kApart;
    const uint8_t* const codes = scratch.codes + static_cast<size_t>(k) * 256 * kRows;
    const TileActivations q = {x.q + k * 256, x.q_stride};
    const int32_t* const starts = scratch.starts + k * kStartsOfBlock<Format>;
    if constexpr (Plan::kFolded) {
      SumFoldedBlock<Plan::kOffset != 0, kApart>(codes, q, starts, to);
    } else {
      constexpr int kOffset = kRun == Plan::kRun ? Plan::kOffset : Plan::kWideOffset;
      SumScaledBlock<Format::kGroupLength, kRun, kOffset != 0, kStartStep<kRun>, Plan::kHalves, kApart>(
          codes, q, scratch.scales + static_cast<size_t>(k) * 16 * kRows, starts, to);
    }
  }

  // From one start to the next; those of runs of 8 have 64 bits.
  template <int kRun>
  static constexpr int kStartStep = kRun == 8 ? 2 : 1;
  template <class Format>
  static constexpr int kStartsOfBlock = 256 / VnniPlan<Format>::kRun * kStartStep<VnniPlan<Format>::kRun>;

  // starts[run] = factor · the sum of the activations of a run, for a block.
  template <int kRun>
  static inline void SetStartsOfBlock(const int8_t* q, const int16_t* sums, int factor, int32_t* starts) {
    const I factors = Set(factor & 0xffff);
    if constexpr (kRun == 8) {
      // Bytes raised by 128, which are summed without a sign.
      const I excess = _mm512_set1_epi64(-factor * 8 * 128);
      for (int i = 0; i < 256; i += 64) {
        const I raised = _mm512_xor_si512(_mm512_loadu_si512(q + i), _mm512_set1_epi8(-128));
        const I sum = _mm512_sad_epu8(raised, _mm512_setzero_si512());
        _mm512_storeu_si512(starts + i / 4, MultiplyAddPairs(excess, sum, factors));
      }
    } else if constexpr (kRun == 16) {
      _mm512_storeu_si512(starts, _mm512_madd_epi16(_mm512_cvtepi16_epi32(Load256(sums)), factors));
    } else {
      const __m256i of_32 = _mm256_madd_epi16(Load256(sums), _mm256_set1_epi16(static_cast<int16_t>(factor)));
      if constexpr (kRun == 32) {
        Store256(starts, of_32);
      } else {
        __m128i four = _mm_add_epi32(_mm256_castsi256_si128(of_32), _mm256_extracti128_si256(of_32, 1));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
        starts[0] = _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
      }
    }
  }

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
