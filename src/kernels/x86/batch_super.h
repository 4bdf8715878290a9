// Batches against the super-block formats: those of superblocks.h, grids.h and ternary.h. Templates of
// internal linkage (isa_avx2.h).
#pragma once

#include "kernels/x86/batch.h"
#include "kernels/x86/superblocks.h"

namespace sluice::kernels {
namespace {

// What a block gives besides its codes.
struct BlockScales {
  int32_t* scales;  // of 16 groups; of 8 groups, and then 8 minimums, where groups have 32 elements
  int32_t* mins;    // of 16 groups
  float d;
  float dmin;
};

// Codes as the panel holds them: signed ones raised where the instruction set wants them unsigned.
template <class Isa>
inline __m256i Raised(__m256i signed_codes) {
  if constexpr (Isa::kSignedExcess == 0) return signed_codes;
  return _mm256_xor_si256(signed_codes, _mm256_set1_epi8(-128));
}

template <class Isa, class Format, int j = 0>
inline void StoreCodes(const std::byte* block, uint8_t* codes) {
  if constexpr (j < 8) {
    const __m256i part = CodesOf<Isa, Format, j>(block);
    Store256(codes + 32 * j, Format::kSigned ? Raised<Isa>(part) : part);
    StoreCodes<Isa, Format, j + 1>(block, codes);
  }
}

// The even groups and then the odd ones, as int16 → 16 int32 in order.
inline void StoreInOrder(__m256i even_odd, int32_t* to) {
  const __m128i even = _mm256_castsi256_si128(even_odd);
  const __m128i odd = _mm256_extracti128_si256(even_odd, 1);
  Store256(to, _mm256_cvtepi16_epi32(_mm_unpacklo_epi16(even, odd)));
  Store256(to + 8, _mm256_cvtepi16_epi32(_mm_unpackhi_epi16(even, odd)));
}

// Readers: the format's constants, kGroups (8 or 16) of kGroupLength, and Read.
template <class Isa, class Format>
struct Reader16 : Format {
  static constexpr int kGroups = 16;
  static constexpr int kGroupLength = 16;
  static inline void Read(const std::byte* block, uint8_t* codes, BlockScales& out) {
    StoreCodes<Isa, Format>(block, codes);
    StoreInOrder(Format::RowScales(block), out.scales);
    out.d = Format::Scale(block);
    if constexpr (Format::kHasMin) {
      StoreInOrder(Format::RowMinimums(block), out.mins);
      out.dmin = Format::Minimum(block);
    }
  }
};

template <class Isa, class Format>
struct ReaderQ45 : Format {
  static constexpr int kGroups = 8;
  static constexpr int kGroupLength = 32;
  static inline void Read(const std::byte* block, uint8_t* codes, BlockScales& out) {
    StoreCodes<Isa, Format>(block, codes);
    const uint32_t w0 = LoadU32(block + 4), w1 = LoadU32(block + 8), w2 = LoadU32(block + 12);
    const uint32_t scale_high = (w2 & 0x0f0f0f0fu) | ((w0 >> 2) & 0x30303030u);
    const uint32_t min_high = ((w2 >> 4) & 0x0f0f0f0fu) | ((w1 >> 2) & 0x30303030u);
    const auto bytes_of = [](uint32_t low, uint32_t high) {
      return _mm256_cvtepu8_epi32(_mm_setr_epi32(static_cast<int>(low), static_cast<int>(high), 0, 0));
    };
    Store256(out.scales, bytes_of(w0 & 0x3f3f3f3fu, scale_high));
    Store256(out.scales + 8, bytes_of(w1 & 0x3f3f3f3fu, min_high));
    out.d = LoadHalf(block);
    out.dmin = LoadHalf(block + 2);
  }
};

template <class Isa>
struct ReaderIQ4_XS : SuperIQ4_XS {
  static constexpr int kGroups = 8;
  static constexpr int kGroupLength = 32;
  static inline void Read(const std::byte* block, uint8_t* codes, BlockScales& out) {
    StoreCodes<Isa, SuperIQ4_XS>(block, codes);
    const __m256i low = _mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int>(LoadU32(block + 4))),
                                          _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i high = _mm256_srlv_epi32(_mm256_set1_epi32(LoadU16(block + 2)),
                                           _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    const __m256i six = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
                                        _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4));
    Store256(out.scales, _mm256_sub_epi32(six, _mm256_set1_epi32(32)));
    out.d = LoadHalf(block);
  }
};

template <class Ops, class Reader>
struct SuperFamily {
  using I = typename Ops::I;
  using F = typename Ops::F;
  using Scratch = PanelScratch<Ops::kRows>;
  static constexpr int kRows = Ops::kRows;
  static constexpr int kChains = 1;
  static constexpr int kGroups = Reader::kGroups;
  static constexpr size_t kBytes = Reader::kBytes;
  static constexpr int kPairs = kGroups / 2;
  // Codes too large by an offset count as a minimum of offset · scale, where block sums don't see to it.
  static constexpr int kOffset = Ops::kExactSums || Reader::kSigned ? 0 : Reader::kOffset;
  static constexpr bool kHasMinSums = Reader::kHasMin || kOffset != 0;
  // By how much block sums treat codes as too large that are not.
  static constexpr int kCentre = Ops::template kCentre<Reader>;
  static_assert(kCentre == 0 || kGroups == 8);  // pairs of scales lie behind those of minimums

  inline void Unpack(const Scratch& scratch, const PanelRows<kRows>& rows, int64_t first, int n) const {
    const size_t start = static_cast<size_t>(first / 256) * kBytes;
    for (int k = 0; k < n / 256; ++k) {
      for (int r = 0; r < kRows; ++r) {
        BlockScales block{scratch.block_scales + r * 16, scratch.block_mins + r * 16, 0.0f, 0.0f};
        Reader::Read(rows.row[r] + start + static_cast<size_t>(k) * kBytes, scratch.linear + r * 256, block);
        scratch.d[k * kRows + r] = block.d;
        if constexpr (Reader::kHasMin) scratch.dmin[k * kRows + r] = block.dmin;
      }
      if constexpr (Ops::template kFolds<Reader>) {
        // Not at once: codes that were stored in smaller pieces can't be read again before they are in the
        // cache.
        for (int r = 0; r < kRows; ++r) {
          Ops::template FoldScales<Reader>(scratch.linear + r * 256, scratch.block_scales + r * 16);
        }
      }
      TransposeCodes<Ops>(scratch, k * 256, 256);
      for (int r = 0; r < kRows; r += Ops::kLanes) StoreScales(scratch, k, r);
    }
  }

  inline void Prepare(const Scratch& scratch, const TileInput& x, int columns, int n) const {
    if constexpr (Ops::template kWidens<Reader>) {
      for (int k = 0; k < n / 256; ++k)
        scratch.wide[k] = columns == Ops::kColumns && Ops::template FitsWide<Reader>(x, k);
    }
    for (int c = 0; c < columns; ++c) {
      const int row = c * Scratch::kApart;
      Ops::template SetStarts<Reader>(x.q + c * x.q_stride, x.sums + c * x.sums_stride, n / 256, scratch.wide,
                                      scratch.starts + row);
      std::memcpy(scratch.x_scales + row, x.scale + c * x.scale_stride,
                  static_cast<size_t>(n / 256) * sizeof(float));
      if constexpr (kHasMinSums && kGroups == 8)
        SumsOf32(x.sums + c * x.sums_stride, n / 256, scratch.sums_of_32 + row);
    }
    KeepInMemory();
  }

  template <int C>
  [[gnu::noinline]] void Tile(const Scratch& scratch, const TileInput& x, int n, float* sums) const {
    for (int k = 0; k < n / 256; ++k) {
      if constexpr (Ops::kHasTileLoops && C == Ops::kColumns) {
        if (Ops::template Finishes<Reader>(scratch, k)) {
          Ops::template FinishBlock<Reader>(scratch, k, x, sums);
          if constexpr (kHasMinSums) SubtractMinimums<C>(scratch, k, x, sums);
          continue;
        }
      }
      Ops::template BlockSums<C, Reader>(scratch, k, x);
      AddBlock<C>(scratch, k, x, sums);
    }
  }

  inline void Finish(const float* sums, F y[Ops::kRegisters]) const {
    for (int h = 0; h < Ops::kRegisters; ++h) y[h] = Ops::Load(sums + h * Ops::kLanes);
  }

 private:
  // Where the sums of activations are that pairs of minimums meet in block k.
  static inline const int16_t* ActivationSums(const Scratch& scratch, int k, const TileInput& x) {
    return kGroups == 8 ? scratch.sums_of_32 + k * 8 : x.sums + k * 16;
  }
  static inline int64_t SumsStride(const TileInput& x) {
    return kGroups == 8 ? Scratch::kApart : x.sums_stride;
  }
  static inline const int32_t* Pairs(const Scratch& scratch, int k, int h) {
    return scratch.mins + static_cast<size_t>(k) * 8 * kRows + h * Ops::kLanes;
  }

  // sums [C, kRows] += the products of block k, whose integer sums are in scratch.isum.
  template <int C>
  static inline void AddBlock(const Scratch& scratch, int k, const TileInput& x, float* sums) {
    const int16_t* const xsums = ActivationSums(scratch, k, x);
    for (int h = 0; h < Ops::kRegisters; ++h) {
      const int at = k * kRows + h * Ops::kLanes;
      const int32_t* const pairs = Pairs(scratch, k, h);
      I total[C], msum[C];
      for (int c = 0; c < C; ++c) {
        total[c] = Ops::Load(scratch.isum + c * kRows + h * Ops::kLanes);
        msum[c] = Ops::Set(0);
      }
      if constexpr (kHasMinSums) AddPairs<C>(pairs, xsums, SumsStride(x), msum);
      if constexpr (kCentre != 0) AddPairs<C>(pairs + kPairs * kRows, xsums, SumsStride(x), total);
      for (int c = 0; c < C; ++c) {
        const F dx = Ops::Set(scratch.x_scales[c * Scratch::kApart + k]);
        float* const sum = sums + c * kRows + h * Ops::kLanes;
        if constexpr (kOffset != 0) total[c] = Ops::Subtract(total[c], msum[c]);
        F acc =
            Ops::Fma(Ops::Multiply(Ops::Load(scratch.d + at), dx), Ops::ToFloat(total[c]), Ops::Load(sum));
        if constexpr (Reader::kHasMin) {
          const F dmin = Ops::Multiply(Ops::Load(scratch.dmin + at), dx);
          acc = Ops::FmaNegative(dmin, Ops::ToFloat(msum[c]), acc);
        }
        Ops::Store(sum, acc);
      }
    }
  }

  // sums [C, kRows] −= the minimums of block k · the sums of its activations.
  template <int C>
  static inline void SubtractMinimums(const Scratch& scratch, int k, const TileInput& x, float* sums) {
    for (int h = 0; h < Ops::kRegisters; ++h) {
      I msum[C];
      for (int c = 0; c < C; ++c) msum[c] = Ops::Set(0);
      AddPairs<C>(Pairs(scratch, k, h), ActivationSums(scratch, k, x), SumsStride(x), msum);
      const F d = Ops::Load(scratch.dmin + k * kRows + h * Ops::kLanes);
      for (int c = 0; c < C; ++c) {
        float* const sum = sums + c * kRows + h * Ops::kLanes;
        const F dmin = Ops::Multiply(d, Ops::Set(scratch.x_scales[c * Scratch::kApart + k]));
        Ops::Store(sum, Ops::FmaNegative(dmin, Ops::ToFloat(msum[c]), Ops::Load(sum)));
      }
    }
  }

  // Scales and minimums of block k, rows r … r + kLanes − 1 of the panel.
  static inline void StoreScales(const Scratch& scratch, int k, int r) {
    alignas(64) int32_t columns[16 * Ops::kLanes];
    const auto column = [&columns](int c) { return columns + c * Ops::kLanes; };
    if constexpr (!Ops::template kFolds<Reader> || kOffset != 0 || kGroups == 8) {
      Ops::Transpose(scratch.block_scales + r * 16, 64, 16, column);
    }
    if constexpr (!Ops::template kFolds<Reader>) {
      int32_t* const scales = scratch.scales + static_cast<size_t>(k) * 16 * kRows + r;
      for (int g = 0; g < kGroups; ++g) {
        Ops::Store(scales + g * kRows,
                   Ops::template PanelScale<Reader>(Ops::Load(columns + g * Ops::kLanes)));
      }
    }
    if constexpr (!kHasMinSums) return;
    const int32_t* mins = Reader::kHasMin && kGroups == 8 ? columns + 8 * Ops::kLanes : columns;
    if constexpr (Reader::kHasMin && kGroups == 16) {
      Ops::Transpose(scratch.block_mins + r * 16, 64, 16, column);
    }
    int32_t* const to = scratch.mins + static_cast<size_t>(k) * 8 * kRows + r;
    StorePairs(mins, kOffset, to);
    if constexpr (kCentre != 0) StorePairs(columns, kCentre, to + kPairs * kRows);
  }

  // Pairs of int16 of groups 2i and 2i + 1, times `factor` unless it is 0.
  static inline void StorePairs(const int32_t* of_groups, int factor, int32_t* to) {
    for (int i = 0; i < kPairs; ++i) {
      const int32_t* const low = of_groups + 2 * i * Ops::kLanes;
      const I pair = Ops::Pair(Ops::Load(low), Ops::Load(low + Ops::kLanes));
      Ops::Store(to + i * kRows, factor == 0 ? pair : Ops::MultiplyHalves(pair, factor));
    }
  }

  // acc[c] += the sum over groups of what `pairs` has for each · Σ q.
  template <int C>
  static inline void AddPairs(const int32_t* pairs, const int16_t* xsums, int64_t stride, I acc[C]) {
    for (int i = 0; i < kPairs; ++i) {
      const I weights = Ops::Load(pairs + i * kRows);
      for (int c = 0; c < C; ++c) {
        int32_t x;
        std::memcpy(&x, xsums + c * stride + 2 * i, sizeof(x));
        acc[c] = Ops::MultiplyAddPairs(acc[c], weights, Ops::Set(x));
      }
    }
  }

  // From the sums of 16 activations each, of so many blocks.
  static inline void SumsOf32(const int16_t* sums, int blocks, int16_t* to) {
    for (int k = 0; k < blocks; ++k) {
      const __m256i wide = _mm256_madd_epi16(Load256(sums + 16 * k), _mm256_set1_epi16(1));
      const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(wide, wide), 0x08);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8 * k), _mm256_castsi256_si128(packed));
    }
  }
};

template <class Ops, class Reader>
inline void MatmulSuperBatch(const MatmulArgs& args) {
  MatmulBatch<Ops>(args, SuperFamily<Ops, Reader>{});
}

}  // namespace
}  // namespace sluice::kernels
