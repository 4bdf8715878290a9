// Batches against the 32-element formats (blocks32.h): eight chains for each element of the result. Templates
// of internal linkage (isa_avx2.h).
#pragma once

#include "kernels/x86/batch.h"
#include "kernels/x86/blocks32.h"

namespace sluice::kernels {
namespace {

template <class Ops, class Format>
struct BlockFamily {
  using I = typename Ops::I;
  using F = typename Ops::F;
  using Scratch = PanelScratch<Ops::kRows>;
  static constexpr int kRows = Ops::kRows;
  static constexpr int kChains = 8;

  inline void Unpack(const Scratch& scratch, const PanelRows<kRows>& rows, int64_t first, int n) const {
    const int blocks = n / 32;
    const size_t start = static_cast<size_t>(first / 32) * Format::kBytes;
    for (int k = 0; k < blocks; k += 8) {
      const int count = blocks - k < 8 ? blocks - k : 8;
      for (int r = 0; r < kRows; ++r) {
        const std::byte* block = rows.row[r] + start + static_cast<size_t>(k) * Format::kBytes;
        for (int i = 0; i < count; ++i, block += Format::kBytes) {
          ReadCodes(block, scratch.linear + r * 256 + i * 32);
          scratch.d[(k + i) * kRows + r] = Format::Scale(block);
          if constexpr (Format::kHasMin) scratch.dmin[(k + i) * kRows + r] = Format::Minimum(block);
        }
      }
      TransposeCodes<Ops>(scratch.linear, scratch.codes + static_cast<size_t>(k) * 32 * kRows);
    }
  }

  template <int C>
  inline void Tile(const Scratch& scratch, const TileInput& x, int n, float* sums) const {
    for (int chain = 0; chain < kChains; ++chain) {
      F acc[C][Ops::kRegisters];
      for (int c = 0; c < C; ++c) {
        for (int h = 0; h < Ops::kRegisters; ++h) acc[c][h] = Ops::Load(Sum(sums, c, chain, h));
      }
      for (int k = chain; k < n / 32; k += kChains) AddBlock<C>(scratch, x, k, acc);
      for (int c = 0; c < C; ++c) {
        for (int h = 0; h < Ops::kRegisters; ++h) Ops::Store(Sum(sums, c, chain, h), acc[c][h]);
      }
    }
  }

  inline void Finish(const float* sums, F y[Ops::kRegisters]) const {
    for (int h = 0; h < Ops::kRegisters; ++h) {
      F chain[kChains];
      for (int i = 0; i < kChains; ++i) chain[i] = Ops::Load(sums + i * kRows + h * Ops::kLanes);
      for (int half = kChains / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) chain[i] = Ops::Add(chain[i], chain[i + half]);
      }
      y[h] = chain[0];
    }
  }

 private:
  static inline float* Sum(float* sums, int c, int chain, int h) {
    return sums + (c * kChains + chain) * kRows + h * Ops::kLanes;
  }

  static inline void ReadCodes(const std::byte* block, uint8_t* out) {
    const CodePair twice = Format::template Codes<typename Ops::Isa>(block, block);
    __m256i codes = _mm256_permute2x128_si256(twice.first, twice.last, 0x20);
    if constexpr (Format::kSigned && Ops::Isa::kSignedExcess != 0) {
      codes = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
    }
    Store256(out, codes);
  }

  // Block k of the part.
  template <int C>
  static inline void AddBlock(const Scratch& scratch, const TileInput& x, int k, F acc[C][Ops::kRegisters]) {
    I isum[C][Ops::kRegisters];
    int xsum[C];
    for (int c = 0; c < C; ++c) {
      const int16_t* pair = x.sums + c * x.sums_stride + k * 2;
      xsum[c] = pair[0] + pair[1];
      for (int h = 0; h < Ops::kRegisters; ++h) {
        isum[c][h] = Ops::Set(Ops::kOffsetInGroups ? 0 : -Format::kOffset * xsum[c]);
      }
    }
    Ops::template AddGroup<C, Format, 32, false>(scratch.codes + static_cast<size_t>(k) * 32 * kRows,
                                                 x.q + k * 32, x.q_stride, x.sums + k * 2, x.sums_stride,
                                                 nullptr, isum);
    for (int h = 0; h < Ops::kRegisters; ++h) {
      const F d = Ops::Load(scratch.d + k * kRows + h * Ops::kLanes);
      for (int c = 0; c < C; ++c) {
        const F dx = Ops::Set(x.scale[c * x.scale_stride + k]);
        acc[c][h] = Ops::Fma(Ops::Multiply(d, dx), Ops::ToFloat(isum[c][h]), acc[c][h]);
        if constexpr (Format::kHasMin) {
          const F m = Ops::Load(scratch.dmin + k * kRows + h * Ops::kLanes);
          acc[c][h] = Ops::Fma(Ops::Multiply(m, dx), Ops::Set(static_cast<float>(xsum[c])), acc[c][h]);
        }
      }
    }
  }
};

template <class Ops, class Format>
inline void MatmulBlockBatch(const MatmulArgs& args) {
  MatmulBatch<Ops>(args, BlockFamily<Ops, Format>{});
}

}  // namespace
}  // namespace sluice::kernels
