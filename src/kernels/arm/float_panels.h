// Batches against F32, F16 and BF16 weights. A panel of rows is widened and transposed once, so that a
// register lane is a row; a tile of it × a few activation rows keeps the sums of one of dot16's 16 lanes,
// here called chains, in registers (docs/arithmetic.md, section 2). Private to this folder; in an anonymous
// namespace, as formats.h.
//
// A chain takes one float of each 64-byte line of the activations. So that these lines stay in the L1 cache
// until all chains took theirs, a tile goes through the columns in stretches: all chains of a stretch, then
// the next. In between, its sums lie in memory.
#pragma once

#include <algorithm>
#include <new>

#include "kernels/arm/math.h"
#include "kernels/arm/products.h"

namespace sluice::kernels::arm {
namespace {

constexpr int kFloatChains = 16;
constexpr int kFloatStretch = 1024;  // columns
constexpr int kFloatPart = 4096;     // columns of a row that are unpacked at once
constexpr int kFloatTile = 5;        // activation rows; of 6, the sums leave no room for what is loaded
constexpr int kFloatTiles = 160;     // that meet an unpacked part before the next one

// What lies in args.scratch, for panels of kRegisters registers of rows.
template <int kRegisters>
struct FloatPanel {
  static constexpr int kPanelRows = kRegisters * 4;
  // A line is left free behind each chain: at distances of powers of two they would share few sets of L1.
  alignas(64) float weights[kFloatChains][kFloatPart / kFloatChains * kPanelRows + 16];  // [chain][step][row]
  float sums[kFloatTiles][kFloatChains][kFloatTile * kPanelRows];  // [tile][chain][activation row][row]
};

// Four columns of four rows → four rows of four columns.
inline void Transpose(float32x4_t (&x)[4]) {
  const float32x4_t even[2] = {vtrn1q_f32(x[0], x[1]), vtrn1q_f32(x[2], x[3])};
  const float32x4_t odd[2] = {vtrn2q_f32(x[0], x[1]), vtrn2q_f32(x[2], x[3])};
  const auto join = [](const float32x4_t(&halves)[2], bool high) {
    const float64x2_t a = vreinterpretq_f64_f32(halves[0]), b = vreinterpretq_f64_f32(halves[1]);
    return vreinterpretq_f32_f64(high ? vtrn2q_f64(a, b) : vtrn1q_f64(a, b));
  };
  x[0] = join(even, false);
  x[1] = join(odd, false);
  x[2] = join(even, true);
  x[3] = join(odd, true);
}

// Sixteen columns of four rows, to sixteen chains.
[[gnu::always_inline]] inline void StoreChains(const Sixteen (&w)[4], float* weights, size_t chain_floats) {
  Times<4>([&]<int t>() __attribute__((always_inline)) {
    float32x4_t four[4] = {w[0].v[t], w[1].v[t], w[2].v[t], w[3].v[t]};
    Transpose(four);
    Times<4>([&]<int j>() __attribute__((always_inline)) {
      vst1q_f32(weights + (4 * t + j) * chain_floats, four[j]);
    });
  });
}

// Columns first … first + columns − 1 of the rows from r on, at most a part.
template <typename Element, int kRegisters>
void FillFloatPanel(const MatmulArgs& args, int64_t r, int64_t first, int columns,
                    FloatPanel<kRegisters>& panel) {
  constexpr size_t kChainFloats = sizeof(panel.weights[0]) / sizeof(float);
  for (int h = 0; h < kRegisters; ++h) {
    const RowPointers pointers(args, r + 4 * h);
    const std::byte* row[4];
    for (int j = 0; j < 4; ++j) row[j] = pointers.row[j] + first * Element::kBytes;
    float* to = panel.weights[0] + 4 * h;
    int k = 0;
    for (; k + 16 <= columns; k += 16, to += panel.kPanelRows) {
      const int64_t at = int64_t{k} * Element::kBytes;
      StoreChains({Element::Load(row[0] + at), Element::Load(row[1] + at), Element::Load(row[2] + at),
                   Element::Load(row[3] + at)},
                  to, kChainFloats);
    }
    if (k == columns) continue;
    Sixteen w[4];
    for (int j = 0; j < 4; ++j)
      w[j] = LoadElements<Element>(row[j] + int64_t{k} * Element::kBytes, columns - k);
    StoreChains(w, to, kChainFloats);
  }
}

// sums[activation row][row] += products of `steps` elements of each row and every 16th activation.
template <int kRegisters, int kColumns>
[[gnu::noinline]] void AddFloatProducts(const float* weights, const float* const* x, int64_t offset,
                                        int steps, float* sums) {
  float32x4_t acc[kColumns][kRegisters];
  Times<kColumns * kRegisters>([&]<int i>() __attribute__((always_inline)) {
    acc[i / kRegisters][i % kRegisters] = vld1q_f32(sums + 4 * i);
  });
  const float* column[kColumns];
  for (int c = 0; c < kColumns; ++c) column[c] = x[c] + offset;
  for (int step = 0; step < steps; ++step, weights += 4 * kRegisters) {
    float32x4_t w[kRegisters];
    for (int h = 0; h < kRegisters; ++h) w[h] = vld1q_f32(weights + 4 * h);
    for (int c = 0; c < kColumns; ++c) {
      for (int h = 0; h < kRegisters; ++h) acc[c][h] = vfmaq_n_f32(acc[c][h], w[h], column[c][16 * step]);
    }
  }
  Times<kColumns * kRegisters>([&]<int i>() __attribute__((always_inline)) {
    vst1q_f32(sums + 4 * i, acc[i / kRegisters][i % kRegisters]);
  });
}

// Adds the products of a part of a row, `columns` from column `first` on.
template <int kRegisters, int kColumns>
void AddFloatTile(const FloatPanel<kRegisters>& panel, const float* const* x, int64_t first, int columns,
                  float (*sums)[kFloatTile * 4 * kRegisters]) {
  for (int k = 0; k < columns; k += kFloatStretch) {
    const int n = std::min(kFloatStretch, columns - k);
    for (int chain = 0; chain < kFloatChains; ++chain) {
      AddFloatProducts<kRegisters, kColumns>(panel.weights[chain] + k / 16 * panel.kPanelRows, x,
                                             first + k + chain, (n - chain + 15) / 16, sums[chain]);
    }
  }
}

// The zeros that fill up a row of so many columns.
template <int n>
inline void AddFloatZeros(int64_t columns, float (*sums)[n]) {
  if (columns % 16 == 0) return;
  for (int64_t chain = columns % 16; chain < kFloatChains; ++chain) {
    for (float& sum : sums[chain]) sum = sum + 0.0f;
  }
}

// Folds the chains, to those of chain 0.
template <int n>
inline void FoldChains(float (*sums)[n]) {
  for (int half = kFloatChains / 2; half > 0; half /= 2) {
    for (int chain = 0; chain < half; ++chain) {
      for (int i = 0; i < n; ++i) sums[chain][i] = sums[chain][i] + sums[chain + half][i];
    }
  }
}

// What one tile of activation rows has to do with a part of the columns. Where kColumns is more than count,
// the last activation row is taken again and the result dropped.
template <int kRegisters, int kColumns>
void RunFloatTile(const MatmulArgs& args, const FloatPanel<kRegisters>& panel, int64_t r, int64_t b,
                  int64_t count, int64_t first, int columns, float (*sums)[kFloatTile * 4 * kRegisters]) {
  const int64_t all = args.x.columns;
  const float* x[kColumns];
  for (int c = 0; c < kColumns; ++c) x[c] = args.x.f32 + (b + std::min<int64_t>(c, count - 1)) * all;
  if (first == 0) std::fill_n(sums[0], kFloatChains * kFloatTile * 4 * kRegisters, 0.0f);
  AddFloatTile<kRegisters, kColumns>(panel, x, first, columns, sums);
  if (first + columns < all) return;
  AddFloatZeros(all, sums);
  FoldChains(sums);
  for (int64_t c = 0; c < count; ++c) {
    for (int h = 0; h < kRegisters; ++h) {
      const int64_t row = r + 4 * h;
      StoreRows(vld1q_f32(sums[0] + (c * kRegisters + h) * 4), args.rows - row,
                args.y + (b + c) * args.y_stride + row);
    }
  }
}

// The rows from r on, as many as a panel holds.
template <typename Element, int kRegisters>
void MatmulFloatPanel(const MatmulArgs& args, int64_t r) {
  FloatPanel<kRegisters>& panel = *new (args.scratch.data()) FloatPanel<kRegisters>;
  static_assert(sizeof(panel) <= kMatmulScratchBytes);
  for (int64_t block = 0; block < args.x.batch; block += kFloatTiles * kFloatTile) {
    const int64_t end = std::min<int64_t>(args.x.batch, block + kFloatTiles * kFloatTile);
    for (int64_t first = 0; first < args.x.columns; first += kFloatPart) {
      const auto columns = static_cast<int>(std::min<int64_t>(kFloatPart, args.x.columns - first));
      FillFloatPanel<Element>(args, r, first, columns, panel);
      for (int64_t b = block; b < end; b += kFloatTile) {
        const int64_t count = std::min<int64_t>(kFloatTile, end - b);
        const auto run = [&]<int kColumns>() {
          RunFloatTile<kRegisters, kColumns>(args, panel, r, b, count, first, columns,
                                             panel.sums[(b - block) / kFloatTile]);
        };
        if (count > 4) {
          run.template operator()<kFloatTile>();
        } else if (count > 2) {
          run.template operator()<4>();
        } else {
          run.template operator()<2>();
        }
      }
    }
  }
}

// All rows from r on: panels of kRegisters registers, the last rows in smaller ones.
template <typename Element, int kRegisters = 4>
void MatmulFloatBatch(const MatmulArgs& args, int64_t r = 0) {
  for (; args.rows - r > kRegisters / 2 * 4; r += kRegisters * 4)
    MatmulFloatPanel<Element, kRegisters>(args, r);
  if constexpr (kRegisters > 1) MatmulFloatBatch<Element, kRegisters / 2>(args, r);
}

}  // namespace
}  // namespace sluice::kernels::arm
