// Which rows of weights a kernel for few activation rows works on together, chosen for the memory they come
// from. Templates of internal linkage (isa_avx2.h).
//
// The rows of a call are cut into N stretches that are walked through side by side. Prefetchers stop at the
// end of every 4 KiB page; with streams that are far apart, the others keep the memory busy while one begins
// a page. One stream, or N neighbouring rows, are read at 0.75 of the bandwidth that this way gives
// (measured in docs/speed.md).
#pragma once

#include "kernels/kernels.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

constexpr int kPrefetchAhead = 1024;  // bytes, in each stream

// Calls dot(first, step, b, y) for N rows of weights at a time, from `first` on and `step` bytes apart, and
// each activation row b; it sets y[0 … N) to their products. Rows that are left over come alone, N times the
// same.
template <int N, typename Dot>
inline void ForEachPanel(const MatmulArgs& args, Dot dot) {
  const auto panel = [&](int64_t row, int64_t apart) {
    for (int64_t b = 0; b < args.x.batch; ++b) {
      alignas(32) float y[N];
      dot(args.weights + static_cast<size_t>(row) * args.row_bytes,
          static_cast<size_t>(apart) * args.row_bytes, b, y);
      float* out = args.y + b * args.y_stride + row;
      for (int i = 0; i < N; ++i) out[i * apart] = y[i];
    }
  };
  const int64_t stretch = args.rows / N;
  const int64_t whole = N * stretch;
  for (int64_t i = 0; i < stretch + (args.rows - whole); ++i) {
    panel(i < stretch ? i : whole + (i - stretch), i < stretch ? stretch : 0);
  }
}

}  // namespace
}  // namespace sluice::kernels
