// Products with a whole batch on AVX-512 VNNI. A panel of 32 rows is unpacked once to unsigned bytes, four codes of each
// row side by side, so that a register lane is a row: dpbusd then needs no sum over lanes, and a tile of 32 rows × 6
// activation rows keeps its integer sums in registers. Order of float operations: docs/arithmetic.md, section 4.
//
// Unsigned codes are the true ones plus an offset; the sums start at −offset · Σ q, which makes them exact.
//
// Internal linkage (isa_avx2.h). Included by the files that make the products of one family each.
#pragma once

#include "kernels/kernels.h"
#include "kernels/x86/isa_avx512vnni.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

constexpr int kPanelRows = 32;
constexpr int kTileColumns = 6;          // activation rows of a tile
constexpr int kBatchTile = 96;           // activation rows that share one unpacking of a part of the panel
constexpr int kPartColumns = 6144;       // weights of a row that are unpacked at a time
constexpr int kPartBlocks = kPartColumns / 256;

// Where the parts of args.scratch lie. Rows of a panel are innermost everywhere.
struct PanelScratch {
  uint8_t* codes;     // [kPartColumns / 4, 32, 4]
  int32_t* scales;    // super-blocks: [kPartBlocks, 16, 32]
  int32_t* mins;      // super-blocks: [kPartBlocks, 8, 32], two int16 each
  float* d;           // super-blocks: [kPartBlocks, 32]; blocks: [kPartBlocks · 8, 32]
  float* dmin;        // the same
  float* sums;        // [kBatchTile, chains, 32]: the float accumulators between parts
  int32_t* excess;    // [kTileColumns, kPartColumns / 16]: where the integer sums of a tile start
  uint8_t* linear;    // [16, 256]: codes of 16 rows before they are transposed

  static constexpr size_t kCodes = static_cast<size_t>(kPartColumns) * kPanelRows;
  static constexpr size_t kScales = static_cast<size_t>(kPartBlocks) * 16 * kPanelRows * 4;
  static constexpr size_t kMins = kScales / 2;
  static constexpr size_t kFloats = static_cast<size_t>(kPartBlocks) * 8 * kPanelRows * 4;
  static constexpr size_t kSums = static_cast<size_t>(kBatchTile) * 8 * kPanelRows * 4;
  static constexpr size_t kExcess = static_cast<size_t>(kTileColumns) * (kPartColumns / 16) * 4;
  static constexpr size_t kLinear = 16 * 256;
  static_assert(kCodes + kScales + kMins + 2 * kFloats + kSums + kExcess + kLinear <= kMatmulScratchBytes);

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
    excess = reinterpret_cast<int32_t*>(take(kExcess));
    linear = reinterpret_cast<uint8_t*>(take(kLinear));
  }
};

// Rows of 16 32-bit lanes → columns.
inline void Transpose16(const __m512i in[16], __m512i out[16]) {
  __m512i a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(in[i], in[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(in[i], in[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  // b[4r + c]: in each 128-bit lane l the column 4l + c of rows 4r … 4r + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512i r01_even = _mm512_shuffle_i32x4(b[c], b[4 + c], 0x88);
    const __m512i r01_odd = _mm512_shuffle_i32x4(b[c], b[4 + c], 0xdd);
    const __m512i r23_even = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0x88);
    const __m512i r23_odd = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0xdd);
    out[c] = _mm512_shuffle_i32x4(r01_even, r23_even, 0x88);
    out[8 + c] = _mm512_shuffle_i32x4(r01_even, r23_even, 0xdd);
    out[4 + c] = _mm512_shuffle_i32x4(r01_odd, r23_odd, 0x88);
    out[12 + c] = _mm512_shuffle_i32x4(r01_odd, r23_odd, 0xdd);
  }
}

// 16 rows of 256 codes → their place among the 32 rows of the panel. `first` is 0 or 16.
inline void TransposeCodes(const uint8_t* linear, int first, uint8_t* codes) {
  for (int c = 0; c < 256; c += 64) {
    __m512i rows[16], columns[16];
    for (int r = 0; r < 16; ++r) rows[r] = _mm512_loadu_si512(linear + r * 256 + c);
    Transpose16(rows, columns);
    for (int i = 0; i < 16; ++i) {
      _mm512_storeu_si512(codes + static_cast<size_t>(c / 4 + i) * (kPanelRows * 4) + first * 4, columns[i]);
    }
  }
}

// Adds the products of `steps` × 4 codes to the integer sums of C activation rows. q: C rows, `stride` apart.
template <int C>
inline void AddSteps(const uint8_t* codes, const int8_t* q, int64_t stride, int steps, __m512i sum[C][2]) {
  for (int s = 0; s < steps; ++s) {
    const __m512i w0 = _mm512_loadu_si512(codes + s * (kPanelRows * 4));
    const __m512i w1 = _mm512_loadu_si512(codes + s * (kPanelRows * 4) + 64);
    for (int c = 0; c < C; ++c) {
      int32_t four;
      std::memcpy(&four, q + c * stride + s * 4, sizeof(four));
      const __m512i x = _mm512_set1_epi32(four);
      sum[c][0] = _mm512_dpbusd_epi32(sum[c][0], w0, x);
      sum[c][1] = _mm512_dpbusd_epi32(sum[c][1], w1, x);
    }
  }
}

// The rows of a panel that lie in the matrix: a short panel reads its last row again.
struct PanelRows {
  const std::byte* row[kPanelRows];
  int n;

  inline PanelRows(const MatmulArgs& args, int64_t r) {
    n = static_cast<int>(args.rows - r < kPanelRows ? args.rows - r : kPanelRows);
    for (int i = 0; i < kPanelRows; ++i) {
      row[i] = args.weights + static_cast<size_t>(r + (i < n ? i : n - 1)) * args.row_bytes;
    }
  }
};

inline void StoreRows(float* y, int n, __m512 low, __m512 high) {
  const uint32_t mask = n >= 32 ? 0xffffffffu : (1u << n) - 1u;
  _mm512_mask_storeu_ps(y, static_cast<__mmask16>(mask), low);
  _mm512_mask_storeu_ps(y + 16, static_cast<__mmask16>(mask >> 16), high);
}

// Walks the matrix: for each panel, batch tile and part of the row, unpack (once, when the row is one part) and run the
// tiles. A Family has Unpack(scratch, rows, first element, elements), Tile<C>(scratch, x, b, first element, elements,
// sums of b), Finish(sums of one activation row) → two registers of 16 results, and kChains.
template <class Family>
inline void MatmulBatch(const MatmulArgs& args, const Family& family) {
  const ActivationRows& x = args.x;
  const PanelScratch scratch(args.scratch.data());
  constexpr size_t kSumsPerColumn = static_cast<size_t>(Family::kChains) * kPanelRows;
  const bool one_part = x.columns <= kPartColumns;
  for (int64_t r = 0; r < args.rows; r += kPanelRows) {
    const PanelRows rows(args, r);
    if (one_part) family.Unpack(scratch, rows, 0, static_cast<int>(x.columns));
    for (int64_t b0 = 0; b0 < x.batch; b0 += kBatchTile) {
      const int64_t b_end = x.batch - b0 < kBatchTile ? x.batch : b0 + kBatchTile;
      std::memset(scratch.sums, 0, static_cast<size_t>(b_end - b0) * kSumsPerColumn * sizeof(float));
      for (int64_t k = 0; k < x.columns; k += kPartColumns) {
        const int n = static_cast<int>(x.columns - k < kPartColumns ? x.columns - k : kPartColumns);
        if (!one_part) family.Unpack(scratch, rows, k, n);
        for (int64_t b = b0; b < b_end;) {
          float* const sums = scratch.sums + static_cast<size_t>(b - b0) * kSumsPerColumn;
          const int64_t left = b_end - b;
          if (left >= 6) {
            family.template Tile<6>(scratch, x, b, k, n, sums);
            b += 6;
          } else if (left >= 4) {
            family.template Tile<4>(scratch, x, b, k, n, sums);
            b += 4;
          } else if (left >= 2) {
            family.template Tile<2>(scratch, x, b, k, n, sums);
            b += 2;
          } else {
            family.template Tile<1>(scratch, x, b, k, n, sums);
            b += 1;
          }
        }
      }
      for (int64_t b = b0; b < b_end; ++b) {
        __m512 y[2];
        family.Finish(scratch.sums + static_cast<size_t>(b - b0) * kSumsPerColumn, y);
        StoreRows(args.y + b * args.y_stride + r, rows.n, y[0], y[1]);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
