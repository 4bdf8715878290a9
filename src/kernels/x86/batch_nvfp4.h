// Batches against NVFP4 (nvfp4.h): a group of 16 is a step, and eight chains make an element of the result.
// Templates of internal linkage (isa_avx2.h).
#pragma once

#include "kernels/x86/batch.h"
#include "kernels/x86/nvfp4.h"

namespace sluice::kernels {
namespace {

struct Nvfp4Codes {
  static constexpr int kMaxCode = 24;
  static constexpr bool kSigned = false;
};

template <class Ops>
struct Nvfp4Family {
  using I = typename Ops::I;
  using F = typename Ops::F;
  using Scratch = PanelScratch<Ops::kRows>;
  static constexpr int kRows = Ops::kRows;
  static constexpr int kChains = 8;

  inline void Unpack(const Scratch& scratch, const PanelRows<kRows>& rows, int64_t first, int n) const {
    float* const scales = Scales(scratch);
    for (int element = 0; element < n; element += 256) {
      const int groups = n - element < 256 ? (n - element) / 16 : 16;
      for (int r = 0; r < kRows; ++r) {
        const std::byte* block =
            rows.row[r] + static_cast<size_t>((first + element) / kNvfp4Length) * kNvfp4Bytes;
        for (int g = 0; g < groups; g += 4, block += kNvfp4Bytes) {
          ReadCodes(block + 4, scratch.linear + r * 256 + g * 16);
          for (int i = 0; i < 4; ++i) scales[(element / 16 + g + i) * kRows + r] = GroupScale(block[i]);
        }
      }
      TransposeCodes<Ops>(scratch, element, groups * 16);
    }
  }

  inline void Prepare(const Scratch&, const TileInput&, int, int) const {}

  template <int C>
  [[gnu::noinline]] void Tile(const Scratch& scratch, const TileInput& x, int n, float* sums) const {
    const float* const scales = Scales(scratch);
    for (int chain = 0; chain < kChains; ++chain) {
      const auto sum = [&](int c, int h) { return sums + (c * kChains + chain) * kRows + h * Ops::kLanes; };
      F acc[C][Ops::kRegisters];
      for (int c = 0; c < C; ++c) {
        for (int h = 0; h < Ops::kRegisters; ++h) acc[c][h] = Ops::Load(sum(c, h));
      }
      for (int k = chain; k < n / 16; k += kChains) {
        I isum[C][Ops::kRegisters];
        for (int c = 0; c < C; ++c) {
          const I start = Ops::Set(-kFp4Offset * x.sums[c * x.sums_stride + k]);
          for (int h = 0; h < Ops::kRegisters; ++h) isum[c][h] = start;
        }
        Ops::template SmallBlockSums<C, Nvfp4Codes, 16>(scratch.codes + static_cast<size_t>(k) * 16 * kRows,
                                                        x.q + k * 16, x.q_stride, isum);
        for (int h = 0; h < Ops::kRegisters; ++h) {
          const F d = Ops::Load(scales + k * kRows + h * Ops::kLanes);
          for (int c = 0; c < C; ++c) {
            const F dx = Ops::Set(x.scale[c * x.scale_stride + k / 2]);
            acc[c][h] = Ops::Fma(Ops::Multiply(d, dx), Ops::ToFloat(isum[c][h]), acc[c][h]);
          }
        }
      }
      for (int c = 0; c < C; ++c) {
        for (int h = 0; h < Ops::kRegisters; ++h) Ops::Store(sum(c, h), acc[c][h]);
      }
    }
  }

  inline void Finish(const float* sums, F y[Ops::kRegisters]) const { FoldChains<Ops, kChains>(sums, y); }

 private:
  // [group, row], where super-blocks have their integer scales.
  static inline float* Scales(const Scratch& scratch) { return reinterpret_cast<float*>(scratch.scales); }

  // 32 bytes → the 64 codes of a block.
  static inline void ReadCodes(const std::byte* bytes, uint8_t* out) {
    const __m256i both = Load256(bytes), mask = _mm256_set1_epi8(15);
    const __m256i low = _mm256_and_si256(both, mask);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
    const __m256i values = _mm256_broadcastsi128_si256(Fp4Values());
    const __m256i even = _mm256_shuffle_epi8(values, _mm256_unpacklo_epi64(low, high));  // groups 0 and 2
    const __m256i odd = _mm256_shuffle_epi8(values, _mm256_unpackhi_epi64(low, high));   // groups 1 and 3
    Store256(out, _mm256_permute2x128_si256(even, odd, 0x20));
    Store256(out + 32, _mm256_permute2x128_si256(even, odd, 0x31));
  }
};

template <class Ops>
inline void MatmulNvfp4Batch(const MatmulArgs& args) {
  MatmulBatch<Ops>(args, Nvfp4Family<Ops>{});
}

}  // namespace
}  // namespace sluice::kernels
