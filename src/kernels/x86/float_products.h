// Products with F32, F16 and BF16 weights, for few activation rows: tiles of rows × activation rows, 16 lanes
// each. Larger batches: batch_floats.h. Templates of internal linkage (isa_avx2.h).
#pragma once

#include "kernels/kernels.h"
#include "kernels/x86/batch.h"
#include "kernels/x86/streams.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

struct WeightF32 {
  static constexpr int kBytes = 4;
  template <class Isa>
  static inline typename Isa::Lanes Load(const void* p) {
    return Isa::LoadF32(p);
  }
};
struct WeightF16 {
  static constexpr int kBytes = 2;
  template <class Isa>
  static inline typename Isa::Lanes Load(const void* p) {
    return Isa::LoadF16(p);
  }
};
struct WeightBf16 {
  static constexpr int kBytes = 2;
  template <class Isa>
  static inline typename Isa::Lanes Load(const void* p) {
    return Isa::LoadBf16(p);
  }
};

// The last n < 16 elements of a row, filled up with zeros.
template <class Isa, class Weight>
inline typename Isa::Lanes LoadLast(const std::byte* p, int64_t n) {
  alignas(64) std::byte copy[16 * Weight::kBytes] = {};
  std::memcpy(copy, p, static_cast<size_t>(n) * Weight::kBytes);
  return Weight::template Load<Isa>(copy);
}

// y[c * y_stride + r * y_step] for R rows of weights, `step` bytes apart, and C rows of activations. A
// function of its own, so that nothing else competes for the registers.
template <class Isa, class Weight, int R, int C>
[[gnu::noinline]] void DotTile(const std::byte* weights, size_t step, const float* x, int64_t columns,
                               float* y, int64_t y_stride, int64_t y_step) {
  typename Isa::Lanes acc[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) acc[r][c] = Isa::Set(0.0f);
  }
  int64_t i = 0;
  for (; i + 16 <= columns; i += 16) {
    typename Isa::Lanes w[R];
    for (int r = 0; r < R; ++r) {
      const std::byte* p = weights + r * step + i * Weight::kBytes;
      if constexpr (C == 1) PrefetchLines(p + kPrefetchAhead, 1);
      w[r] = Weight::template Load<Isa>(p);
    }
    for (int c = 0; c < C; ++c) {
      const typename Isa::Lanes v = Isa::LoadF32(x + c * columns + i);
      for (int r = 0; r < R; ++r) acc[r][c] = Isa::Fma(w[r], v, acc[r][c]);
    }
  }
  if (i < columns) {
    for (int c = 0; c < C; ++c) {
      const auto* last = reinterpret_cast<const std::byte*>(x + c * columns + i);
      const typename Isa::Lanes v = LoadLast<Isa, WeightF32>(last, columns - i);
      for (int r = 0; r < R; ++r) {
        const std::byte* p = weights + r * step + i * Weight::kBytes;
        acc[r][c] = Isa::Fma(LoadLast<Isa, Weight>(p, columns - i), v, acc[r][c]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) y[c * y_stride + r * y_step] = Isa::Fold(acc[r][c]);
  }
}

// Rows of weights that stay in the L2 cache while the whole batch passes.
constexpr size_t kBlockBytes = 256 * 1024;

// kRows and kColumns are the tile's size for batches: as many accumulators as registers allow. Single
// activation rows take kSingleRows rows of weights at once, to have enough independent chains.
template <class Isa, class Weight, int kSingleRows, int kRows, int kColumns>
inline void MatmulFloats(const MatmulArgs& args) {
  const ActivationRows& x = args.x;
  // R rows from r on, `apart` rows from one to the next.
  const auto tile = [&]<int R, int C>(int64_t r, int64_t b, int64_t apart) {
    DotTile<Isa, Weight, R, C>(args.weights + static_cast<size_t>(r) * args.row_bytes,
                               static_cast<size_t>(apart) * args.row_bytes, x.f32 + b * x.columns, x.columns,
                               args.y + b * args.y_stride + r, args.y_stride, apart);
  };
  // Tiles of R rows, then single rows, from r to `end`.
  const auto tiles = [&]<int R, int C>(int64_t r, int64_t end, int64_t b) {
    for (; r + R <= end; r += R) tile.template operator()<R, C>(r, b, 1);
    for (; r < end; ++r) tile.template operator()<1, C>(r, b, 1);
  };
  if (x.batch == 1) {
    const int64_t stretch = args.rows / kSingleRows;  // as in streams.h
    for (int64_t r = 0; r < stretch; ++r) tile.template operator()<kSingleRows, 1>(r, 0, stretch);
    return tiles.template operator()<1, 1>(kSingleRows * stretch, args.rows, 0);
  }
  const auto rows_in_block = static_cast<int64_t>(kBlockBytes / args.row_bytes / kRows * kRows);
  const int64_t block = rows_in_block > kRows ? rows_in_block : kRows;
  for (int64_t r = 0; r < args.rows; r += block) {
    const int64_t end = r + block < args.rows ? r + block : args.rows;
    ForEachTile<kColumns>(0, x.batch,
                          [&]<int C>(int64_t b) { tiles.template operator()<kRows, C>(r, end, b); });
  }
}

}  // namespace
}  // namespace sluice::kernels
