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

constexpr int kBatchTile = 96;      // activation rows that share one unpacking of a part of the panel
constexpr int kPartColumns = 6144;  // elements of a row that are unpacked at a time
constexpr int kPartBlocks = kPartColumns / 256;

// Where the parts of args.scratch lie. The rows of a panel are innermost everywhere.
template <int kRows>
struct PanelScratch {
  uint8_t* codes;         // [kPartColumns / 4, kRows, 4]
  int32_t* scales;        // super-blocks: [kPartBlocks, 16, kRows]
  int32_t* mins;          // super-blocks: [kPartBlocks, 8, kRows], two int16 each
  float* d;               // super-blocks: [kPartBlocks, kRows]; blocks of 32: [kPartBlocks · 8, kRows]
  float* dmin;            // the same
  float* sums;            // [kBatchTile, chains, kRows]: the float accumulators between parts
  uint8_t* linear;        // [kRows, 256]: codes before they are transposed
  int32_t* block_scales;  // [kRows, 16]: scales and minimums of one block of each row, likewise
  int32_t* block_mins;

  static constexpr size_t kCodes = static_cast<size_t>(kPartColumns) * kRows;
  static constexpr size_t kScales = static_cast<size_t>(kPartBlocks) * 16 * kRows * sizeof(int32_t);
  static constexpr size_t kMins = kScales / 2;
  static constexpr size_t kFloats = static_cast<size_t>(kPartBlocks) * 8 * kRows * sizeof(float);
  static constexpr size_t kSums = static_cast<size_t>(kBatchTile) * 8 * kRows * sizeof(float);
  static constexpr size_t kLinear = static_cast<size_t>(kRows) * 256;
  static constexpr size_t kBlock = static_cast<size_t>(kRows) * 16 * sizeof(int32_t);
  static_assert(kCodes + kScales + kMins + 2 * kFloats + kSums + kLinear + 2 * kBlock <= kMatmulScratchBytes);

  explicit inline PanelScratch(std::byte* p) {
    const auto take = [&p](size_t bytes) {
      std::byte* const part = p;
      p += bytes;
      return part;
    };
    codes = reinterpret_cast<uint8_t*>(take(kCodes));
    scales = reinterpret_cast<int32_t*>(take(kScales));
    mins = reinterpret_cast<int32_t*>(take(kMins));
    d = reinterpret_cast<float*>(take(kFloats));
    dmin = reinterpret_cast<float*>(take(kFloats));
    sums = reinterpret_cast<float*>(take(kSums));
    linear = reinterpret_cast<uint8_t*>(take(kLinear));
    block_scales = reinterpret_cast<int32_t*>(take(kBlock));
    block_mins = reinterpret_cast<int32_t*>(take(kBlock));
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

// The activation rows of a tile, from some element of the row on.
struct TileInput {
  const int8_t* q;
  const float* scale;
  const int16_t* sums;
  int64_t q_stride;  // from one activation row to the next
  int64_t scale_stride;
  int64_t sums_stride;

  inline TileInput(const ActivationRows& x, int64_t b, int64_t first) {
    const int64_t length = BlockLength(x.kind);
    q_stride = x.columns;
    scale_stride = x.columns / length;
    sums_stride = x.columns / 16;
    q = x.q + b * q_stride + first;
    scale = x.scale + b * scale_stride + first / length;
    sums = x.sums + b * sums_stride + first / 16;
  }
};

// The codes of kRows rows (linear) → their place in the panel.
template <class Ops>
inline void TransposeCodes(const uint8_t* linear, uint8_t* codes) {
  for (int r = 0; r < Ops::kRows; r += Ops::kLanes) {
    Ops::Transpose(linear + r * 256, 256, 64, codes + r * 4, Ops::kRows * 4);
  }
}

// Runs tiles of at most C activation rows until none is left.
template <int C, class Family, class Scratch>
inline void RunTiles(const Family& family, const Scratch& scratch, const ActivationRows& x, int64_t b,
                     int64_t b_end, int64_t first, int n, float* sums) {
  constexpr size_t kSumsPerRow = static_cast<size_t>(Family::kChains) * Family::kRows;
  for (; b + C <= b_end; b += C, sums += C * kSumsPerRow) {
    family.template Tile<C>(scratch, TileInput(x, b, first), n, sums);
  }
  if constexpr (C > 1) RunTiles<(C > 4 ? 4 : C / 2)>(family, scratch, x, b, b_end, first, n, sums);
}

// Walks the matrix: for each panel, batch tile and part of the row, unpacks (once, when the row is one part)
// and runs the tiles. A Family has kChains, and
//   Unpack(scratch, rows, first, n)    elements [first, first + n) of the rows into the panel
//   Tile<C>(scratch, input, n, sums)   adds their products with C activation rows to sums [C, kChains, kRows]
//   Finish(sums, y)                    folds the chains of one activation row
template <class Ops, class Family>
inline void MatmulBatch(const MatmulArgs& args, const Family& family) {
  constexpr size_t kSumsPerRow = static_cast<size_t>(Family::kChains) * Ops::kRows;
  const ActivationRows& x = args.x;
  const PanelScratch<Ops::kRows> scratch(args.scratch.data());
  const bool one_part = x.columns <= kPartColumns;
  for (int64_t r = 0; r < args.rows; r += Ops::kRows) {
    const PanelRows<Ops::kRows> rows(args, r);
    if (one_part) family.Unpack(scratch, rows, 0, static_cast<int>(x.columns));
    for (int64_t b0 = 0; b0 < x.batch; b0 += kBatchTile) {
      const int64_t b_end = x.batch - b0 < kBatchTile ? x.batch : b0 + kBatchTile;
      std::memset(scratch.sums, 0, static_cast<size_t>(b_end - b0) * kSumsPerRow * sizeof(float));
      for (int64_t k = 0; k < x.columns; k += kPartColumns) {
        const int n = static_cast<int>(x.columns - k < kPartColumns ? x.columns - k : kPartColumns);
        if (!one_part) family.Unpack(scratch, rows, k, n);
        RunTiles<Ops::kColumns>(family, scratch, x, b0, b_end, k, n, scratch.sums);
      }
      for (int64_t b = b0; b < b_end; ++b) {
        typename Ops::F y[Ops::kRegisters];
        family.Finish(scratch.sums + static_cast<size_t>(b - b0) * kSumsPerRow, y);
        Ops::StoreRows(args.y + b * args.y_stride + r, rows.n, y);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
