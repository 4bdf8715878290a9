// Products with a whole batch. A panel of rows is unpacked once to bytes, four codes of each row side by
// side, so that a register lane is a row and no sum over lanes is needed; tiles of the panel × a few
// activation rows keep their integer sums in registers. The order of float operations is that of single rows
// (docs/arithmetic.md, section 4).
//
// Templates of internal linkage (isa_avx2.h). `Ops` is BatchAvx2 or BatchAvx512Vnni (batch_<isa>.h):
// registers of kLanes rows, kRegisters of them in a panel.
#pragma once

#include "kernels/kernels.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

constexpr int kPartColumns = 12288;  // elements that are unpacked at a time, of one panel or of several
constexpr int kBatchSums = 768;     // float accumulators of each row of the panel: activation rows × chains
constexpr int kPartBlocks = kPartColumns / 256;

// The activation rows of a tile, from some element of the row on.
struct TileInput {
  const int8_t* q;
  const float* scale;
  const int16_t* sums;
  const Reach* reach;  // or null
  int64_t q_stride;  // from one activation row to the next
  int64_t scale_stride;
  int64_t sums_stride;
  int64_t reach_stride;

  inline TileInput(const ActivationRows& x, int64_t b, int64_t first) {
    const int64_t length = BlockLength(x.kind);
    q_stride = x.columns;
    scale_stride = x.columns / length;
    sums_stride = x.columns / 16;
    reach_stride = x.columns / 256;
    q = x.q + b * q_stride + first;
    scale = x.scale + b * scale_stride + first / length;
    sums = x.sums + b * sums_stride + first / 16;
    reach = x.reach == nullptr ? nullptr : x.reach + b * reach_stride + first / 256;
  }
};

// After numbers of activation rows were stored that are each broadcast to all lanes. GCC would take them out
// of the vectors that they were computed in, one by one; loads from memory broadcast for nothing.
inline void KeepInMemory() { asm("" ::: "memory"); }

// Where the parts of args.scratch lie. The rows of a panel are innermost everywhere.
template <int kRows>
struct PanelScratch {
  uint8_t* codes;         // [kPartColumns / 4 + 8, kRows, 4]
  int32_t* scales;        // super-blocks: [kPartBlocks, 16, kRows]; NVFP4 has the floats of its groups there
  int32_t* mins;          // super-blocks: [kPartBlocks, 8, kRows], two int16 each
  float* d;               // super-blocks: [kPartBlocks, kRows]; blocks of 32: [kPartBlocks · 8, kRows]
  float* dmin;            // the same
  uint8_t* linear;        // [kRows, 256]: codes before they are transposed
  int32_t* block_scales;  // [kRows, 16]: scales and minimums of one block of each row, likewise
  int32_t* block_mins;
  // Of the activation rows of a tile, as Family::Prepare makes them for all panels; row c is kApart later.
  int32_t* starts;      // what integer sums start at, in order
  float* x_scales;      // of each block
  int16_t* sums_of_32;  // of the activations
  bool* wide;           // [kPartBlocks]: sums of longer runs fit as well
  // Of a tile:
  int32_t* isum;  // [kMostColumns, kRows]: the integer sums of a block
  float* sums;    // [activation rows, chains, kRows]: the float accumulators

  static constexpr int kMostColumns = 7;
  // At most 64 starts for 256 elements. Not a multiple of 4 KiB (see below).
  static constexpr int kApart = kPartColumns / 4 + 16;
  // And a block of 32 to spare, where the filling of an incomplete transposition goes.
  static constexpr size_t kCodes = static_cast<size_t>(kPartColumns + 32) * kRows;
  static constexpr size_t kScales = static_cast<size_t>(kPartBlocks) * 16 * kRows * sizeof(int32_t);
  static constexpr size_t kMins = kScales / 2;
  static constexpr size_t kFloats = static_cast<size_t>(kPartBlocks) * 8 * kRows * sizeof(float);
  static constexpr size_t kSums = static_cast<size_t>(kBatchSums) * kRows * sizeof(float);
  static constexpr size_t kLinear = static_cast<size_t>(kRows) * 256;
  static constexpr size_t kBlock = static_cast<size_t>(kRows) * 16 * sizeof(int32_t);
  static constexpr size_t kOfTile = kMostColumns * kApart * sizeof(int32_t);
  static constexpr size_t kWide = (kPartBlocks + 63) / 64 * 64;
  static constexpr size_t kIsum = static_cast<size_t>(kMostColumns) * kRows * sizeof(int32_t);
  // A load waits for stores before it that have the same address within 4 KiB. What a tile stores at the end
  // of a block therefore lies far behind the beginning of a page, where the codes of the next block begin.
  static constexpr size_t kPage = 4096;
  static constexpr size_t kTileOffset = kPage - 2 * kIsum;
  static_assert(2 * kPage + kTileOffset + kCodes + kScales + kMins + 2 * kFloats + kSums + kLinear +
                    2 * kBlock + 3 * kOfTile + kWide + kIsum <=
                kMatmulScratchBytes);

  explicit inline PanelScratch(std::byte* p) {
    const auto take = [&p](size_t bytes) {
      std::byte* const part = p;
      p += bytes;
      return part;
    };
    const auto align = [&p](size_t to) { p += -reinterpret_cast<uintptr_t>(p) % to; };
    align(kPage);
    codes = reinterpret_cast<uint8_t*>(take(kCodes));
    scales = reinterpret_cast<int32_t*>(take(kScales));
    mins = reinterpret_cast<int32_t*>(take(kMins));
    d = reinterpret_cast<float*>(take(kFloats));
    dmin = reinterpret_cast<float*>(take(kFloats));
    linear = reinterpret_cast<uint8_t*>(take(kLinear));
    block_scales = reinterpret_cast<int32_t*>(take(kBlock));
    block_mins = reinterpret_cast<int32_t*>(take(kBlock));
    starts = reinterpret_cast<int32_t*>(take(kOfTile));
    x_scales = reinterpret_cast<float*>(take(kOfTile));
    sums_of_32 = reinterpret_cast<int16_t*>(take(kOfTile));
    wide = reinterpret_cast<bool*>(take(kWide));
    align(kPage);
    take(kTileOffset);
    isum = reinterpret_cast<int32_t*>(take(kIsum));
    sums = reinterpret_cast<float*>(take(kSums));
  }

  // The scratch of panel i of several that are unpacked side by side, `columns` of each, a multiple of 256.
  // What belongs to tiles they share.
  inline PanelScratch Panel(int i, int columns) const {
    PanelScratch panel = *this;
    const size_t blocks = static_cast<size_t>(i) * (columns / 256);
    panel.codes += blocks * 256 * kRows;
    panel.scales += blocks * 16 * kRows;
    panel.mins += blocks * 8 * kRows;
    panel.d += blocks * 8 * kRows;
    panel.dmin += blocks * 8 * kRows;
    return panel;
  }
};

// The rows of a panel: a short panel reads its last row again.
template <int kRows>
struct PanelRows {
  const std::byte* row[kRows];
  int n;

  inline PanelRows(const MatmulArgs& args, int64_t r) {
    n = static_cast<int>(args.rows - r < kRows ? args.rows - r : kRows);
    for (int i = 0; i < kRows; ++i) {
      row[i] = args.weights + static_cast<size_t>(r + (i < n ? i : n - 1)) * args.row_bytes;
    }
  }
};

// The first `count` codes of scratch.linear's rows → elements element … element + count − 1 of the panel.
template <class Ops>
inline void TransposeCodes(const PanelScratch<Ops::kRows>& scratch, int element, int count) {
  for (int r = 0; r < Ops::kRows; r += Ops::kLanes) {
    uint8_t* const codes = scratch.codes + static_cast<size_t>(element) * Ops::kRows + r * 4;
    Ops::Transpose(scratch.linear + r * 256, 256, count / 4,
                   [codes](int c) { return codes + c * (Ops::kRows * 4); });
  }
}

// Of families with several chains: the chains of one activation row, added in pairs.
template <class Ops, int kChains>
inline void FoldChains(const float* sums, typename Ops::F y[Ops::kRegisters]) {
  for (int h = 0; h < Ops::kRegisters; ++h) {
    typename Ops::F chain[kChains];
    for (int i = 0; i < kChains; ++i) chain[i] = Ops::Load(sums + i * Ops::kRows + h * Ops::kLanes);
    for (int half = kChains / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) chain[i] = Ops::Add(chain[i], chain[i + half]);
    }
    y[h] = chain[0];
  }
}

// Calls tile<n>(b) for activation rows b … b_end − 1, at most C at a time, until none is left.
template <int C, class Tile>
inline void ForEachTile(int64_t b, int64_t b_end, Tile tile) {
  for (; b + C <= b_end; b += C) tile.template operator()<C>(b);
  if constexpr (C > 1) ForEachTile<(C > 4 ? 4 : C / 2)>(b, b_end, tile);
}

// Walks the matrix: unpacks as much of the rows as the scratch holds, once for all activation rows or at
// least for many, and runs the tiles. Of narrow matrices that is several panels, and the activations of a
// tile are in the L1 cache for all but the first. A Family has kChains, and
//
//   Unpack(scratch, rows, first, n)    elements [first, first + n) of the rows into the panel
//
//   Prepare(scratch, input, C, n)      what the tiles of all panels need of C activation rows
//
//   Tile<C>(scratch, input, n, sums)   adds their products with those to sums [C, kChains, kRows]
//
//   Finish(sums, y)                    folds the chains of one activation row
template <class Ops, class Family>
inline void MatmulBatch(const MatmulArgs& args, const Family& family) {
  static_assert(Ops::kColumns <= PanelScratch<Ops::kRows>::kMostColumns);
  constexpr int64_t kBatchTile = kBatchSums / Family::kChains;  // activation rows that share an unpacking
  constexpr int64_t kSumsPerRow = int64_t{Family::kChains} * Ops::kRows;
  const ActivationRows& x = args.x;
  const PanelScratch<Ops::kRows> scratch(args.scratch.data());
  float* const sums = scratch.sums;
  const auto clear = [&](int64_t n) {
    for (int64_t i = 0; i < n * kSumsPerRow; i += Ops::kLanes) Ops::Store(sums + i, Ops::Set(0.0f));
  };
  // Rows r … of activation rows b … b + n − 1.
  const auto finish = [&](int64_t r, int64_t b, int64_t n) {
    const auto rows = static_cast<int>(args.rows - r < Ops::kRows ? args.rows - r : Ops::kRows);
    for (int64_t i = 0; i < n; ++i) {
      typename Ops::F y[Ops::kRegisters];
      family.Finish(sums + i * kSumsPerRow, y);
      Ops::StoreRows(args.y + (b + i) * args.y_stride + r, rows, y);
    }
  };
  if (x.columns <= kPartColumns) {
    const int n = static_cast<int>(x.columns), apart = (n + 255) / 256 * 256;
    const int64_t most_rows = kPartColumns / apart * Ops::kRows;
    for (int64_t first = 0; first < args.rows; first += most_rows) {
      const int64_t end = first + most_rows < args.rows ? first + most_rows : args.rows;
      const auto panel = [&](int64_t r) {
        return scratch.Panel(static_cast<int>((r - first) / Ops::kRows), apart);
      };
      for (int64_t r = first; r < end; r += Ops::kRows)
        family.Unpack(panel(r), PanelRows<Ops::kRows>(args, r), 0, n);
      ForEachTile<Ops::kColumns>(0, x.batch, [&]<int C>(int64_t b) {
        const TileInput input(x, b, 0);
        family.Prepare(scratch, input, C, n);
        for (int64_t r = first; r < end; r += Ops::kRows) {
          clear(C);
          family.template Tile<C>(panel(r), input, n, sums);
          finish(r, b, C);
        }
      });
    }
    return;
  }
  for (int64_t r = 0; r < args.rows; r += Ops::kRows) {
    const PanelRows<Ops::kRows> rows(args, r);
    for (int64_t b0 = 0; b0 < x.batch; b0 += kBatchTile) {
      const int64_t b_end = x.batch - b0 < kBatchTile ? x.batch : b0 + kBatchTile;
      clear(b_end - b0);
      for (int64_t k = 0; k < x.columns; k += kPartColumns) {
        const int n = static_cast<int>(x.columns - k < kPartColumns ? x.columns - k : kPartColumns);
        family.Unpack(scratch, rows, k, n);
        ForEachTile<Ops::kColumns>(b0, b_end, [&]<int C>(int64_t b) {
          const TileInput input(x, b, k);
          family.Prepare(scratch, input, C, n);
          family.template Tile<C>(scratch, input, n, sums + (b - b0) * kSumsPerRow);
        });
      }
      finish(r, b0, b_end - b0);
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
