// Products with super-block formats: panels of eight rows, whose integer sums are reduced together, one chain
// of fma for each row. Templates of internal linkage (isa_avx2.h).
#pragma once

#include "kernels/x86/streams.h"
#include "kernels/x86/superblocks.h"

namespace sluice::kernels {
namespace {

// Eight rows against one activation row.
template <class Isa, class Format, template <class, class> class Header>
inline __m256 DotPanel(RowBlocks rows, int64_t blocks, const int8_t* q, const float* scale,
                       const int16_t* sums) {
  __m256 acc = _mm256_setzero_ps();
  for (int64_t k = 0; k < blocks; ++k) {
    const Superblock x = {q + k * 256, sums + k * 16};
    const Header<Isa, Format> header(rows);
    __m256i lanes[8];
    for (int r = 0; r < 8; ++r) {
      PrefetchLines(rows.row(r) + kPrefetchAhead, Format::kBytes);
      lanes[r] = header.RowSum(rows.row(r), r, x);
    }
    const __m256 dx = _mm256_set1_ps(scale[k]);
    acc = _mm256_fmadd_ps(_mm256_mul_ps(header.d, dx), _mm256_cvtepi32_ps(SumEach(lanes)), acc);
    if constexpr (Format::kHasMin) {
      const __m256 msum = _mm256_cvtepi32_ps(header.MinSums(rows, x));
      acc = _mm256_fnmadd_ps(_mm256_mul_ps(header.dmin, dx), msum, acc);
    }
    rows.first += Format::kBytes;
  }
  return acc;
}

template <class Isa, class Format, template <class, class> class Header>
inline void MatmulPanels(const MatmulArgs& args) {
  const ActivationRows& x = args.x;
  const int64_t blocks = x.columns / 256;
  ForEachPanel<8>(args, [&](const std::byte* first, size_t step, int64_t b, float* y) {
    _mm256_store_ps(y, DotPanel<Isa, Format, Header>({first, step}, blocks, x.q + b * x.columns,
                                                     x.scale + b * blocks, x.sums + b * (x.columns / 16)));
  });
}

}  // namespace
}  // namespace sluice::kernels
