// Batches against F32, F16 and BF16 weights. A panel of rows is widened and transposed once, so that a
// register lane is a row; tiles of it × a few activation rows keep one of dot16's 16 chains at a time in
// registers (docs/arithmetic.md, section 2). Templates of internal linkage (isa_avx2.h); `Ops` as in batch.h.
//
// A chain takes one float of each 64-byte line of the activations. So that these lines stay in the L1 cache
// until all chains took theirs, a tile goes through the columns in stretches: all chains of a stretch, then
// the next. In between, its sums lie in memory.
#pragma once

#include <bit>

#include "kernels/x86/batch.h"
#include "kernels/x86/float_products.h"

namespace sluice::kernels {
namespace {

// Chains lie in a panel, and are computed, in the order in which they are folded: 0, 8, 4, 12, 2 … 15. This
// is the one at a place of that order, or the place of a chain.
constexpr int ChainAt(int place) {
  return (place & 1) << 3 | (place & 2) << 1 | (place & 4) >> 1 | (place & 8) >> 3;
}

// How panels of kRegisters registers of rows lie in args.scratch. Rows are innermost everywhere.
template <class Ops, int kRegisters>
struct FloatPanel {
  static constexpr int kRows = kRegisters * Ops::kLanes;
  static constexpr int kChains = 16;
  static constexpr int kMostColumns = 6;   // activation rows of a tile
  static constexpr int kStretch = 1024;    // columns
  static constexpr int kMostWhole = 4096;  // columns; longer rows are unpacked stretch by stretch
  static constexpr int kSteps = kStretch / kChains;
  // A line is left free behind each chain: at distances of powers of two they would share few sets of L1.
  static constexpr size_t kChainFloats = static_cast<size_t>(kSteps) * kRows + 16;
  static constexpr size_t kStretchFloats = kChains * kChainFloats;
  static constexpr size_t kTileFloats = static_cast<size_t>(kMostColumns) * kRows;
  static constexpr int kMostFolded = 4;
  static constexpr size_t kFloats = kMatmulScratchBytes / sizeof(float) - kMostFolded * kTileFloats;
  // Activation rows that share an unpacking of a stretch.
  static constexpr int64_t kBlock =
      static_cast<int64_t>((kFloats - kStretchFloats) / (kChains * kTileFloats)) * kMostColumns;
  static_assert(kMostWhole / kStretch * kStretchFloats + kChains * kTileFloats <= kFloats);

  float* folded;   // [kMostFolded, activation rows of a tile, kRows]: chains that wait for others
  float* weights;  // [stretches, kChains, kSteps, kRows], each chain kChainFloats
  float* sums;     // [tiles, kChains, activation rows of a tile, kRows]

  inline FloatPanel(std::byte* scratch, int64_t columns)
      : folded(reinterpret_cast<float*>(scratch)), weights(folded + kMostFolded * kTileFloats) {
    const int64_t stretches = columns <= kMostWhole ? (columns + kStretch - 1) / kStretch : 1;
    sums = weights + static_cast<size_t>(stretches) * kStretchFloats;
  }
};

// Columns first … first + n − 1 of the rows, at most a stretch → panel.
template <class Ops, class Weight, class Panel>
inline void UnpackFloats(const PanelRows<Panel::kRows>& rows, int64_t first, int n, float* panel) {
  using Isa = typename Ops::Isa;
  for (int r = 0; r < Panel::kRows; r += Ops::kLanes) {
    for (int k = 0; k < n; k += 16) {
      alignas(64) float widened[Ops::kLanes * 16];
      for (int i = 0; i < Ops::kLanes; ++i) {
        const std::byte* p = rows.row[r + i] + (first + k) * Weight::kBytes;
        Isa::Store(widened + i * 16,
                   n - k < 16 ? LoadLast<Isa, Weight>(p, n - k) : Weight::template Load<Isa>(p));
      }
      float* const step = panel + k / 16 * Panel::kRows + r;
      Ops::Transpose(widened, 16 * sizeof(float), 16,
                     [step](int chain) { return step + ChainAt(chain) * Panel::kChainFloats; });
    }
  }
}

// One chain of a tile: kRegisters registers of rows × C activation rows.
template <class Ops, int kRegisters, int C>
struct FloatChain {
  using F = typename Ops::F;
  static constexpr int kRows = kRegisters * Ops::kLanes;
  static constexpr int kUnrolled = 4;
  static constexpr int kPrefetchEvery = 16;

  F acc[C][kRegisters];

  inline void Clear() {
    ForEach([](F& a, int) { a = Ops::Set(0.0f); });
  }
  inline void Load(const float* sums) {
    ForEach([sums](F& a, int at) { a = Ops::Load(sums + at); });
  }
  inline void Add(const float* sums) {
    ForEach([sums](F& a, int at) { a = Ops::Add(a, Ops::Load(sums + at)); });
  }
  inline void AddZero() {
    ForEach([](F& a, int) { a = Ops::Add(a, Ops::Set(0.0f)); });
  }
  inline void Store(float* sums) {
    ForEach([sums](F& a, int at) { Ops::Store(sums + at, a); });
  }

  // Adds the products of `steps` elements of each row with every 16th activation; activation rows are
  // `stride` apart. On the way, every fourth of as many lines from `next` on is prefetched.
  inline void AddProducts(const float* weights, const float* x, int64_t stride, int steps,
                          const float* next) {
    const float* row[C];
    for (int c = 0; c < C; ++c) row[c] = x + c * stride;
    for (; steps >= kPrefetchEvery; steps -= kPrefetchEvery, next += 16) {
      for (int c = 0; c < C; ++c) PrefetchLines(reinterpret_cast<const std::byte*>(next + c * stride), 1);
      for (int i = 0; i < kPrefetchEvery; i += kUnrolled) weights = AddSteps<kUnrolled>(weights, row);
    }
    for (; steps > 0; --steps) weights = AddSteps<1>(weights, row);
  }

 private:
  template <int kSteps>
  inline const float* AddSteps(const float* weights, const float* row[C]) {
    for (int s = 0; s < kSteps; ++s) {
      F w[kRegisters];
      for (int h = 0; h < kRegisters; ++h) w[h] = Ops::Load(weights + s * kRows + h * Ops::kLanes);
      for (int c = 0; c < C; ++c) Ops::template MultiplyAdd<kRegisters>(acc[c], w, row[c] + s * 16);
    }
    for (int c = 0; c < C; ++c) row[c] += kSteps * 16;
    return weights + kSteps * kRows;
  }

  template <class Each>
  inline void ForEach(Each each) {
    for (int c = 0; c < C; ++c) {
      for (int h = 0; h < kRegisters; ++h) each(acc[c][h], c * kRows + h * Ops::kLanes);
    }
  }
};

// A stretch of the columns of a tile's activation rows.
struct FloatStretch {
  const float* x;
  const float* next;  // what the next call will want
  int64_t stride;     // from one activation row to the next
  int columns;
  bool first, last;  // of the row
};

// Adds the products of a stretch to sums; those of the last one are folded → panel.folded.
template <class Ops, int kRegisters, int C>
[[gnu::noinline]] void AddFloatTile(const FloatPanel<Ops, kRegisters>& panel, const float* weights,
                                    const FloatStretch& stretch, float* sums) {
  using Panel = FloatPanel<Ops, kRegisters>;
  constexpr int kTile = C * Panel::kRows;
  int folded = 0;
  for (int place = 0; place < Panel::kChains; ++place, sums += kTile, weights += Panel::kChainFloats) {
    const int chain = ChainAt(place);
    FloatChain<Ops, kRegisters, C> products;
    if (stretch.first) {
      products.Clear();
    } else {
      products.Load(sums);
    }
    products.AddProducts(weights, stretch.x + chain, stretch.stride, (stretch.columns - chain + 15) / 16,
                         stretch.next + place * (Panel::kStretch / Panel::kChains));
    if (!stretch.last) {
      products.Store(sums);
      continue;
    }
    // The zeros that fill up a row.
    if (stretch.columns % 16 != 0 && chain >= stretch.columns % 16) products.AddZero();
    for (int i = std::countr_one(static_cast<unsigned>(place)); i > 0; --i)
      products.Add(panel.folded + --folded * kTile);
    products.Store(panel.folded + folded++ * kTile);
  }
}

// The rows from r on, as many as a panel of kRegisters registers holds.
template <class Ops, class Weight, int kRegisters>
inline void MatmulFloatPanel(const MatmulArgs& args, int64_t r) {
  using Panel = FloatPanel<Ops, kRegisters>;
  const ActivationRows& x = args.x;
  const Panel panel(args.scratch.data(), x.columns);
  const PanelRows<Panel::kRows> rows(args, r);
  const auto store = [&](int64_t b, const float* sums) {
    for (int h = 0; h < kRegisters; h += Ops::kRegisters) {
      typename Ops::F y[Ops::kRegisters] = {};
      for (int i = 0; i < Ops::kRegisters && h + i < kRegisters; ++i)
        y[i] = Ops::Load(sums + (h + i) * Ops::kLanes);
      if (rows.n > h * Ops::kLanes)
        Ops::StoreRows(args.y + b * args.y_stride + r + h * Ops::kLanes, rows.n - h * Ops::kLanes, y);
    }
  };
  const bool whole = x.columns <= Panel::kMostWhole;
  const int64_t part = whole ? x.columns : Panel::kStretch;
  const int64_t block = whole ? x.batch : Panel::kBlock;
  for (int64_t b0 = 0; b0 < x.batch; b0 += block) {
    const int64_t b_end = x.batch - b0 < block ? x.batch : b0 + block;
    for (int64_t k0 = 0; k0 < x.columns; k0 += part) {
      const int64_t end = x.columns - k0 < part ? x.columns : k0 + part;
      const auto columns = [end](int64_t k) {
        return static_cast<int>(end - k < Panel::kStretch ? end - k : Panel::kStretch);
      };
      const auto weights = [&](int64_t k) {
        return panel.weights + static_cast<size_t>((k - k0) / Panel::kStretch) * Panel::kStretchFloats;
      };
      for (int64_t k = k0; k < end; k += Panel::kStretch)
        UnpackFloats<Ops, Weight, Panel>(rows, k, columns(k), weights(k));
      ForEachTile<Panel::kMostColumns>(b0, b_end, [&]<int C>(int64_t b) {
        float* const sums = panel.sums + (whole ? 0 : b - b0) * (Panel::kChains * Panel::kRows);
        const float* const row = x.f32 + b * x.columns;
        for (int64_t k = k0; k < end; k += Panel::kStretch) {
          const float* const next =
              k + Panel::kStretch < end ? row + k + Panel::kStretch : row + C * x.columns + k0;
          AddFloatTile<Ops, kRegisters, C>(panel, weights(k),
                                           {.x = row + k,
                                            .next = next,
                                            .stride = x.columns,
                                            .columns = columns(k),
                                            .first = k == 0,
                                            .last = k + columns(k) == x.columns},
                                           sums);
        }
        if (end == x.columns) {
          for (int c = 0; c < C; ++c) store(b + c, panel.folded + c * Panel::kRows);
        }
      });
    }
  }
}

// Panels of kRegisters registers, the last rows in smaller ones.
template <class Ops, class Weight, int kRegisters>
inline void MatmulFloatBatch(const MatmulArgs& args, int64_t r = 0) {
  for (; args.rows - r > kRegisters / 2 * Ops::kLanes; r += kRegisters * Ops::kLanes)
    MatmulFloatPanel<Ops, Weight, kRegisters>(args, r);
  if constexpr (kRegisters > 1) MatmulFloatBatch<Ops, Weight, kRegisters / 2>(args, r);
}

}  // namespace
}  // namespace sluice::kernels
