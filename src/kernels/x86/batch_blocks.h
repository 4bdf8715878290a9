// Batches against the 32-element formats (blocks32.h): eight chains for each element of the result. Templates
// of internal linkage (isa_avx2.h).
#pragma once

#include "kernels/x86/batch.h"
#include "kernels/x86/blocks32.h"

namespace sluice::kernels {
namespace {

// The blocks of a stretch lie in the panel chain by chain, as tiles go through them: so their accumulators
// stay in registers and the panel is read in order. A stretch is short enough for the activations of a tile
// to stay in the L1 cache.
struct Stretch {
  static constexpr int kMostBlocks = 64;

  int first;  // block of the panel
  int blocks;

  inline Stretch(int begin, int end)
      : first(begin), blocks(end - begin < kMostBlocks ? end - begin : kMostBlocks) {}
  // Where the blocks of a chain begin in the panel; those of chain 8 would behind the last.
  inline int Begin(int chain) const {
    const int more = blocks % 8;  // chains that have one more than the others
    return first + chain * (blocks / 8) + (chain < more ? chain : more);
  }
};

template <class Ops, class Format>
struct BlockFamily {
  using I = typename Ops::I;
  using F = typename Ops::F;
  using Scratch = PanelScratch<Ops::kRows>;
  static constexpr int kRows = Ops::kRows;
  static constexpr int kChains = 8;

  inline void Unpack(const Scratch& scratch, const PanelRows<kRows>& rows, int64_t first, int n) const {
    for (int begin = 0; begin < n / 32; begin += Stretch::kMostBlocks) {
      const Stretch stretch(begin, n / 32);
      size_t at[kChains];  // where the next block of each chain goes
      for (int i = 0; i < kChains; ++i) at[i] = static_cast<size_t>(stretch.Begin(i)) * kRows;
      for (int k = 0; k < stretch.blocks; k += kChains) {
        const int count = stretch.blocks - k < kChains ? stretch.blocks - k : kChains;
        // Blocks that are not there go behind all.
        for (int i = count; i < kChains; ++i) at[i] = static_cast<size_t>(n / 32) * kRows;
        UnpackBlocks(scratch, rows, first / 32 + begin + k, count, at);
        for (size_t& place : at) place += kRows;
      }
    }
  }

  // starts: with minimums, the sums that these are multiplied with.
  inline void Prepare(const Scratch& scratch, const TileInput& x, int columns, int n) const {
    for (int c = 0; c < columns; ++c) {
      SumsOf32(x.sums + c * x.sums_stride, n / 32, scratch.starts + c * Scratch::kApart);
      std::memcpy(scratch.x_scales + c * Scratch::kApart, x.scale + c * x.scale_stride,
                  static_cast<size_t>(n / 32) * sizeof(float));
    }
  }

  template <int C>
  [[gnu::noinline]] void Tile(const Scratch& scratch, const TileInput& x, int n, float* sums) const {
    for (int begin = 0; begin < n / 32; begin += Stretch::kMostBlocks) {
      const Stretch stretch(begin, n / 32);
      for (int chain = 0; chain < kChains; ++chain)
        AddChain<C>(scratch, x, stretch, chain, sums + chain * kRows);
    }
  }

  inline void Finish(const float* sums, F y[Ops::kRegisters]) const { FoldChains<Ops, kChains>(sums, y); }

 private:
  // The blocks of one chain of a stretch. sums: [C, kChains, kRows] from the chain's on.
  template <int C>
  static inline void AddChain(const Scratch& scratch, const TileInput& x, const Stretch& stretch, int chain,
                              float* sums) {
    int p = stretch.Begin(chain), k = stretch.first + chain;
    const int end = stretch.Begin(chain + 1);
    if constexpr (Ops::kHasTileLoops && C == Ops::kColumns && !Format::kHasMin) {
      Ops::template AddTileChain<Scratch::kApart, kChains * kRows>(
          scratch.codes + static_cast<size_t>(p) * 32 * kRows, x.q + k * 32, x.q_stride,
          scratch.d + p * kRows, scratch.starts + k, scratch.x_scales + k, int64_t{end - p}, sums);
      return;
    }
    F acc[C][Ops::kRegisters];
    for (int c = 0; c < C; ++c) {
      for (int h = 0; h < Ops::kRegisters; ++h) acc[c][h] = Ops::Load(Sum(sums, c, h));
    }
    for (; p < end; ++p, k += kChains) {
      I isum[C][Ops::kRegisters];
      for (int c = 0; c < C; ++c) {
        for (int h = 0; h < Ops::kRegisters; ++h)
          isum[c][h] = Ops::Set(Format::kHasMin ? 0 : scratch.starts[c * Scratch::kApart + k]);
      }
      Ops::template SmallBlockSums<C, Format>(scratch.codes + static_cast<size_t>(p) * 32 * kRows,
                                              x.q + k * 32, x.q_stride, isum);
      for (int h = 0; h < Ops::kRegisters; ++h) {
        const F d = Ops::Load(scratch.d + p * kRows + h * Ops::kLanes);
        for (int c = 0; c < C; ++c) {
          const F dx = Ops::Set(scratch.x_scales[c * Scratch::kApart + k]);
          acc[c][h] = Ops::Fma(Ops::Multiply(d, dx), Ops::ToFloat(isum[c][h]), acc[c][h]);
          if constexpr (Format::kHasMin) {
            const F m = Ops::Load(scratch.dmin + p * kRows + h * Ops::kLanes);
            acc[c][h] = Ops::Fma(Ops::Multiply(m, dx),
                                 Ops::ToFloat(Ops::Set(scratch.starts[c * Scratch::kApart + k])), acc[c][h]);
          }
        }
      }
    }
    for (int c = 0; c < C; ++c) {
      for (int h = 0; h < Ops::kRegisters; ++h) Ops::Store(Sum(sums, c, h), acc[c][h]);
    }
  }

  // Blocks block … block + count − 1 of the rows → places at[0 … count).
  static inline void UnpackBlocks(const Scratch& scratch, const PanelRows<kRows>& rows, int64_t block,
                                  int count, const size_t at[kChains]) {
    const size_t start = static_cast<size_t>(block) * Format::kBytes;
    for (int r = 0; r < kRows; ++r) {
      const std::byte* p = rows.row[r] + start;
      for (int i = 0; i < count; i += 2) {
        const std::byte* const a = p + i * Format::kBytes;
        ReadTwo(a, i + 1 < count ? a + Format::kBytes : a, scratch.linear + r * 256 + i * 32);
      }
      for (int i = 0; i < count; ++i, p += Format::kBytes) {
        scratch.d[at[i] + r] = Format::Scale(p);
        if constexpr (Format::kHasMin) scratch.dmin[at[i] + r] = Format::Minimum(p);
      }
    }
    for (int r = 0; r < kRows; r += Ops::kLanes) {
      Ops::Transpose(scratch.linear + r * 256, 256, count * 8, [&](int c) {
        return scratch.codes + at[c / 8] * 32 + static_cast<size_t>(c % 8 * kRows + r) * 4;
      });
    }
  }

  static inline float* Sum(float* sums, int c, int h) { return sums + c * kChains * kRows + h * Ops::kLanes; }

  // Integer sums start at −kOffset · Σ q, where codes are too large by an offset.
  static constexpr int kOffset = Format::kSigned ? Ops::Isa::kSignedExcess : Format::kOffset;
  static constexpr int kFactor = Format::kHasMin ? 1 : -kOffset;

  // kFactor · the sums of 32 activations each, from those of 16.
  static inline void SumsOf32(const int16_t* sums, int n, int32_t* of_32) {
    int i = 0;
    for (; i + 8 <= n; i += 8) {
      Store256(of_32 + i, _mm256_madd_epi16(Load256(sums + 2 * i), _mm256_set1_epi16(kFactor)));
    }
    for (; i < n; ++i) of_32[i] = kFactor * (sums[2 * i] + sums[2 * i + 1]);
  }

  // The codes of two blocks, 32 each.
  static inline void ReadTwo(const std::byte* a, const std::byte* b, uint8_t* out) {
    const CodePair codes = Format::template Codes<typename Ops::Isa>(a, b);
    StoreCodes(_mm256_permute2x128_si256(codes.first, codes.last, 0x20), out);
    StoreCodes(_mm256_permute2x128_si256(codes.first, codes.last, 0x31), out + 32);
  }

  static inline void StoreCodes(__m256i codes, uint8_t* out) {
    if constexpr (Format::kSigned && Ops::Isa::kSignedExcess != 0) {
      codes = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
    }
    Store256(out, codes);
  }
};

template <class Ops, class Format>
inline void MatmulBlockBatch(const MatmulArgs& args) {
  MatmulBatch<Ops>(args, BlockFamily<Ops, Format>{});
}

}  // namespace
}  // namespace sluice::kernels
