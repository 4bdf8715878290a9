// Products with super-block formats: panels of eight rows, whose integer sums are reduced together, one chain
// of fma for each row. Templates of internal linkage (isa_avx2.h).
#pragma once

#include "kernels/x86/superblocks.h"

namespace sluice::kernels {
namespace {

// Eight rows against one activation row. `next` is how far ahead, in bytes, the next panel lies.
template <class Isa, class Format, template <class, class> class Header>
inline __m256 DotPanel(RowBlocks rows, int64_t blocks, const int8_t* q, const float* scale,
                       const int16_t* sums, size_t next) {
  __m256 acc = _mm256_setzero_ps();
  for (int64_t k = 0; k < blocks; ++k) {
    const Superblock x = {q + k * 256, sums + k * 16};
    const Header<Isa, Format> header(rows);
    __m256i lanes[8];
    for (int r = 0; r < 8; ++r) {
      PrefetchLines(rows.row[r] + next, Format::kBytes);
      lanes[r] = header.RowSum(rows.row[r], r, x);
    }
    const __m256 dx = _mm256_set1_ps(scale[k]);
    acc = _mm256_fmadd_ps(_mm256_mul_ps(header.d, dx), _mm256_cvtepi32_ps(SumEach(lanes)), acc);
    if constexpr (Format::kHasMin) {
      const __m256 msum = _mm256_cvtepi32_ps(header.MinSums(rows, x));
      acc = _mm256_fnmadd_ps(_mm256_mul_ps(header.dmin, dx), msum, acc);
    }
    for (int r = 0; r < 8; ++r) rows.row[r] += Format::kBytes;
  }
  return acc;
}

template <class Isa, class Format, template <class, class> class Header>
inline void MatmulPanels(const MatmulArgs& args) {
  const ActivationRows& x = args.x;
  const int64_t blocks = x.columns / 256;
  for (int64_t r = 0; r < args.rows; r += 8) {
    RowBlocks rows;
    const int64_t n = args.rows - r < 8 ? args.rows - r : 8;
    for (int64_t i = 0; i < 8; ++i) {  // a short panel reads its last row again
      rows.row[i] = args.weights + static_cast<size_t>(r + (i < n ? i : n - 1)) * args.row_bytes;
    }
    for (int64_t b = 0; b < x.batch; ++b) {
      const __m256 y = DotPanel<Isa, Format, Header>(rows, blocks, x.q + b * x.columns, x.scale + b * blocks,
                                                     x.sums + b * (x.columns / 16), 8 * args.row_bytes);
      float* out = args.y + b * args.y_stride + r;
      if (n == 8) {
        _mm256_storeu_ps(out, y);
      } else {
        alignas(32) float values[8];
        _mm256_store_ps(values, y);
        for (int64_t i = 0; i < n; ++i) out[i] = values[i];
      }
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
