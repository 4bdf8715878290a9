// Batches against the 32-element formats on AVX-512 VNNI.
#include "kernels/x86/avx512vnni.h"
#include "kernels/x86/avx512vnni_gemm.h"
#include "kernels/x86/blocks32.h"

namespace sluice::kernels::avx512vnni {
namespace {

template <class Format>
struct BlockFamily {
  static constexpr int kChains = 8;
  static constexpr int kOffset = Format::kSigned ? 128 : Format::kOffset;

  inline void Unpack(const PanelScratch& scratch, const PanelRows& rows, int64_t first, int n) const {
    const int blocks = n / 32;
    const size_t start = static_cast<size_t>(first / 32) * Format::kBytes;
    for (int half = 0; half < kPanelRows; half += 16) {
      for (int k = 0; k < blocks; k += 8) {
        const int count = blocks - k < 8 ? blocks - k : 8;
        for (int r = 0; r < 16; ++r) {
          const std::byte* block = rows.row[half + r] + start + static_cast<size_t>(k) * Format::kBytes;
          for (int i = 0; i < count; ++i, block += Format::kBytes) {
            ReadBlock(block, scratch.linear + r * 256 + i * 32);
            scratch.d[(k + i) * kPanelRows + half + r] = Format::Scale(block);
            if constexpr (Format::kHasMin) scratch.dmin[(k + i) * kPanelRows + half + r] = Format::Minimum(block);
          }
        }
        TransposeCodes(scratch.linear, half, scratch.codes + static_cast<size_t>(k) * 32 * kPanelRows);
      }
    }
  }

  template <int C>
  inline void Tile(const PanelScratch& scratch, const ActivationRows& x, int64_t b, int64_t first, int n,
                   float* sums) const {
    const int blocks = n / 32;
    const int64_t x_blocks = x.columns / 32;
    const int8_t* q = x.q + b * x.columns + first;
    const float* scale = x.scale + b * x_blocks + first / 32;
    const int16_t* xsums = x.sums + b * (x.columns / 16) + first / 16;
    for (int chain = 0; chain < 8; ++chain) {
      __m512 acc[C][2];
      for (int c = 0; c < C; ++c) {
        for (int h = 0; h < 2; ++h) acc[c][h] = _mm512_loadu_ps(sums + (c * 8 + chain) * kPanelRows + h * 16);
      }
      for (int k = chain; k < blocks; k += 8) {
        __m512i isum[C][2];
        int xsum[C];
        for (int c = 0; c < C; ++c) {
          const int16_t* pair = xsums + c * (x.columns / 16) + k * 2;
          xsum[c] = pair[0] + pair[1];
          isum[c][0] = isum[c][1] = _mm512_set1_epi32(-kOffset * xsum[c]);
        }
        AddSteps<C>(scratch.codes + static_cast<size_t>(k) * 32 * kPanelRows, q + k * 32, x.columns, 8, isum);
        for (int h = 0; h < 2; ++h) {
          const __m512 d = _mm512_loadu_ps(scratch.d + k * kPanelRows + h * 16);
          for (int c = 0; c < C; ++c) {
            const __m512 dx = _mm512_set1_ps(scale[c * x_blocks + k]);
            acc[c][h] = _mm512_fmadd_ps(_mm512_mul_ps(d, dx), _mm512_cvtepi32_ps(isum[c][h]), acc[c][h]);
            if constexpr (Format::kHasMin) {
              const __m512 m = _mm512_loadu_ps(scratch.dmin + k * kPanelRows + h * 16);
              const __m512 msum = _mm512_set1_ps(static_cast<float>(xsum[c]));
              acc[c][h] = _mm512_fmadd_ps(_mm512_mul_ps(m, dx), msum, acc[c][h]);
            }
          }
        }
      }
      for (int c = 0; c < C; ++c) {
        for (int h = 0; h < 2; ++h) _mm512_storeu_ps(sums + (c * 8 + chain) * kPanelRows + h * 16, acc[c][h]);
      }
    }
  }

  inline void Finish(const float* sums, __m512 y[2]) const {
    for (int h = 0; h < 2; ++h) {
      __m512 chain[8];
      for (int i = 0; i < 8; ++i) chain[i] = _mm512_loadu_ps(sums + i * kPanelRows + h * 16);
      for (int n = 4; n > 0; n /= 2) {
        for (int i = 0; i < n; ++i) chain[i] = _mm512_add_ps(chain[i], chain[i + n]);
      }
      y[h] = chain[0];
    }
  }

 private:
  static inline void ReadBlock(const std::byte* block, uint8_t* out) {
    const CodePair twice = Format::template Codes<Avx512Vnni>(block, block);
    __m256i codes = _mm256_permute2x128_si256(twice.first, twice.last, 0x20);
    if constexpr (Format::kSigned) codes = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
    Store256(out, codes);
  }
};

template <class Format>
inline void MatmulBlocks(const MatmulArgs& args) {
  MatmulBatch(args, BlockFamily<Format>{});
}

}  // namespace

void BatchQ4_0(const MatmulArgs& args) { MatmulBlocks<BlockQ4_0Format>(args); }
void BatchQ4_1(const MatmulArgs& args) { MatmulBlocks<BlockQ4_1Format>(args); }
void BatchQ5_0(const MatmulArgs& args) { MatmulBlocks<BlockQ5_0Format>(args); }
void BatchQ5_1(const MatmulArgs& args) { MatmulBlocks<BlockQ5_1Format>(args); }
void BatchQ8_0(const MatmulArgs& args) { MatmulBlocks<BlockQ8_0Format>(args); }
void BatchIQ4_NL(const MatmulArgs& args) { MatmulBlocks<BlockIQ4_NLFormat>(args); }
void BatchMXFP4(const MatmulArgs& args) { MatmulBlocks<BlockMXFP4Format>(args); }

}  // namespace sluice::kernels::avx512vnni
