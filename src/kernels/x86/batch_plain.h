// Batches against Q1_0 and Q2_0 (plain_blocks.h): one chain for each element of the result, a block a step.
// Templates of internal linkage (isa_avx2.h).
#pragma once

#include <utility>

#include "kernels/x86/batch.h"
#include "kernels/x86/plain_blocks.h"

namespace sluice::kernels {
namespace {

template <class Ops, class Format>
struct PlainFamily {
  using I = typename Ops::I;
  using F = typename Ops::F;
  using Scratch = PanelScratch<Ops::kRows>;
  static constexpr int kRows = Ops::kRows;
  static constexpr int kChains = 1;
  static constexpr int kLength = Format::kLength;

  inline void Unpack(const Scratch& scratch, const PanelRows<kRows>& rows, int64_t first, int n) const {
    const size_t start = static_cast<size_t>(first / kLength) * Format::kBytes;
    for (int element = 0; element < n; element += 256) {
      const int count = n - element < 256 ? n - element : 256;
      for (int r = 0; r < kRows; ++r) {
        for (int i = 0; i < count; i += kLength) {
          const int k = (element + i) / kLength;
          const std::byte* block = rows.row[r] + start + static_cast<size_t>(k) * Format::kBytes;
          ReadCodes(block, scratch.linear + r * 256 + i, std::make_integer_sequence<int, kLength / 32>());
          scratch.d[k * kRows + r] = LoadHalf(block);
        }
      }
      TransposeCodes<Ops>(scratch, element, count);
    }
  }

  inline void Prepare(const Scratch&, const TileInput&, int, int) const {}

  template <int C>
  [[gnu::noinline]] void Tile(const Scratch& scratch, const TileInput& x, int n, float* sums) const {
    F acc[C][Ops::kRegisters];
    for (int c = 0; c < C; ++c) {
      for (int h = 0; h < Ops::kRegisters; ++h) acc[c][h] = Ops::Load(sums + c * kRows + h * Ops::kLanes);
    }
    for (int k = 0; k < n / kLength; ++k) {
      I isum[C][Ops::kRegisters];
      for (int c = 0; c < C; ++c) {
        const I start =
            Ops::Set(-Format::kOffset * SumOfBlock(x.sums + c * x.sums_stride + k * (kLength / 16)));
        for (int h = 0; h < Ops::kRegisters; ++h) isum[c][h] = start;
      }
      for (int element = k * kLength; element < (k + 1) * kLength; element += 32) {
        Ops::template SmallBlockSums<C, Format>(scratch.codes + static_cast<size_t>(element) * kRows,
                                                x.q + element, x.q_stride, isum);
      }
      for (int h = 0; h < Ops::kRegisters; ++h) {
        const F d = Ops::Load(scratch.d + k * kRows + h * Ops::kLanes);
        for (int c = 0; c < C; ++c) {
          const F dx = Ops::Set(x.scale[c * x.scale_stride + k]);
          acc[c][h] = Ops::Fma(Ops::Multiply(d, dx), Ops::ToFloat(isum[c][h]), acc[c][h]);
        }
      }
    }
    for (int c = 0; c < C; ++c) {
      for (int h = 0; h < Ops::kRegisters; ++h) Ops::Store(sums + c * kRows + h * Ops::kLanes, acc[c][h]);
    }
  }

  inline void Finish(const float* sums, F y[Ops::kRegisters]) const {
    for (int h = 0; h < Ops::kRegisters; ++h) y[h] = Ops::Load(sums + h * Ops::kLanes);
  }

 private:
  template <int... part>
  static inline void ReadCodes(const std::byte* block, uint8_t* out, std::integer_sequence<int, part...>) {
    (Store256(out + 32 * part, Format::template Codes<typename Ops::Isa, part>(block)), ...);
  }

  // From the sums of 16 activations each.
  static inline int SumOfBlock(const int16_t* sums) {
    int total = 0;
    for (int g = 0; g < kLength / 16; ++g) total += sums[g];
    return total;
  }
};

template <class Ops, class Format>
inline void MatmulPlainBatch(const MatmulArgs& args) {
  MatmulBatch<Ops>(args, PlainFamily<Ops, Format>{});
}

}  // namespace
}  // namespace sluice::kernels
