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

// Calls dot(rows, b, y) for N rows of weights at a time and each activation row b; it sets y[i] to the
// product of rows[i]. Where stretches are short, the call's last row is read again and its product dropped.
template <int N, typename Dot>
inline void ForEachPanel(const MatmulArgs& args, Dot dot) {
  const int64_t stretch = (args.rows + N - 1) / N;
  for (int64_t r = 0; r < stretch; ++r) {
    const std::byte* rows[N];
    for (int i = 0; i < N; ++i) {
      const int64_t row = i * stretch + r;
      rows[i] = args.weights + static_cast<size_t>(row < args.rows ? row : args.rows - 1) * args.row_bytes;
    }
    for (int64_t b = 0; b < args.x.batch; ++b) {
      alignas(32) float y[N];
      dot(rows, b, y);
      float* out = args.y + b * args.y_stride;
      for (int i = 0; i < N; ++i) {
        if (i * stretch + r < args.rows) out[i * stretch + r] = y[i];
      }
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
