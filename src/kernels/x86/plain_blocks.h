// Products with Q1_0 and Q2_0: blocks with one scale and codes of one or two bits, one chain of fma for each
// row. Panels of eight rows, whose integer sums are reduced together. Templates of internal linkage
// (isa_avx2.h). Layouts: formats/blocks.h.
//
// A format has: kLength elements of a block, kBytes, kMaxCode, kOffset, by which its unsigned codes are too
// large, and Codes<Isa, j>: the 32 codes of part j.
#pragma once

#include "kernels/x86/streams.h"
#include "kernels/x86/superblocks.h"

namespace sluice::kernels {
namespace {

struct PlainQ2_0 {
  static constexpr int kLength = 64;
  static constexpr int kBytes = 18;
  static constexpr int kOffset = 1;
  static constexpr int kMaxCode = 3;
  static constexpr bool kSigned = false;
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    // Eight bytes, each in a lane of its own, whose four codes go to the lane's four bytes.
    uint64_t bytes;
    std::memcpy(&bytes, block + 2 + 8 * j, sizeof(bytes));
    const __m256i one = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes)));
    const __m256i two = _mm256_or_si256(one, _mm256_slli_epi32(one, 12));
    const __m256i four = _mm256_or_si256(two, _mm256_slli_epi32(two, 6));
    return _mm256_and_si256(four, _mm256_set1_epi8(3));
  }
};

struct PlainQ1_0 {
  static constexpr int kLength = 128;
  static constexpr int kBytes = 18;
  static constexpr int kOffset = 1;
  static constexpr int kMaxCode = 2;
  static constexpr bool kSigned = false;
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    return Isa::SpreadBits(LoadU32(block + 2 + 4 * j), 2);
  }
};

// The lanes of a block's integer sum, too large by kOffset · Σ q.
template <class Isa, class Format, int j = 0>
inline __m256i PlainSum(const std::byte* block, const int8_t* q) {
  const __m256i dot = Isa::DotUnsigned(Format::template Codes<Isa, j>(block), Load256(q + 32 * j));
  if constexpr (j + 1 == Format::kLength / 32) {
    return dot;
  } else {
    return _mm256_add_epi32(dot, PlainSum<Isa, Format, j + 1>(block, q));
  }
}

// Eight rows against one activation row.
template <class Isa, class Format>
inline __m256 DotPlainPanel(RowBlocks rows, int64_t blocks, const int8_t* q, const float* scale,
                            const int16_t* sums) {
  constexpr int kGroups = Format::kLength / 16;
  __m256 acc = _mm256_setzero_ps();
  for (int64_t k = 0; k < blocks; ++k) {
    __m256i lanes[8];
    for (int r = 0; r < 8; ++r) {
      PrefetchLines(rows.row(r) + kPrefetchAhead, Format::kBytes);
      lanes[r] = PlainSum<Isa, Format>(rows.row(r), q + k * Format::kLength);
    }
    int total = 0;
    for (int g = 0; g < kGroups; ++g) total += sums[k * kGroups + g];
    const __m256i isum = _mm256_sub_epi32(SumEach(lanes), _mm256_set1_epi32(Format::kOffset * total));
    const __m256 d = _mm256_mul_ps(GatherHalves(rows, 0), _mm256_set1_ps(scale[k]));
    acc = _mm256_fmadd_ps(d, _mm256_cvtepi32_ps(isum), acc);
    rows.first += Format::kBytes;
  }
  return acc;
}

template <class Isa, class Format>
inline void MatmulPlainPanels(const MatmulArgs& args) {
  const ActivationRows& x = args.x;
  const int64_t blocks = x.columns / Format::kLength;
  ForEachPanel<8>(args, [&](const std::byte* first, size_t step, int64_t b, float* y) {
    _mm256_store_ps(y, DotPlainPanel<Isa, Format>({first, step}, blocks, x.q + b * x.columns,
                                                  x.scale + b * blocks, x.sums + b * (x.columns / 16)));
  });
}

}  // namespace
}  // namespace sluice::kernels
