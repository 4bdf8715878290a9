// Products with quantised weights, for the three ARM instruction sets. Four weight rows are taken at a time,
// and the float steps work on the four in lanes, so each follows the canonical order (docs/arithmetic.md,
// section 4).
//
//   one activation row    codes go from the block straight into dot products in registers
//   several               four rows are unpacked into a panel of int8 in this thread's scratch, in the order
//                         that the instruction set multiplies in, which then meets every activation row
//
// `Isa` is a struct with
//   Dot(acc, w, q)        acc + products of 16 pairs, spread over the four lanes in any way
//   Pack(rows, panel)     16 columns of codes of four rows → 64 bytes
//   PanelDots<kColumns, kBatch>(panel, q, out)
//                         out[b] lane r: Σ row r · activation row b over kColumns packed columns
// Private to this folder; in an anonymous namespace, as formats.h.
#pragma once

#include <new>
#include <utility>

#include "kernels/arm/few_bits.h"
#include "kernels/arm/formats.h"
#include "kernels/kernels.h"

namespace sluice::kernels::arm {
namespace {

constexpr int kRows = 4;             // weight rows side by side
constexpr int kPanelColumns = 4096;  // a panel of codes takes a part of L1
constexpr int kPanelGroups = kPanelColumns / 16;
constexpr int kPanelBlocks = kPanelColumns / 32;
constexpr int kBatchTile = 64;  // activation rows that one panel meets before it is unpacked anew
constexpr int kMaxChains = 8;

// Lane i: the sum of the lanes of the i-th argument.
inline int32x4_t SumEach(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
  return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}

// One canonical step for four rows. `msum` is read only with a minimum.
template <bool kMinimum>
inline float32x4_t Step(float32x4_t acc, float32x4_t d, float32x4_t dmin, float dx, int32x4_t isum,
                        int32x4_t msum) {
  acc = vfmaq_f32(acc, vmulq_n_f32(d, dx), vcvtq_f32_s32(isum));
  if constexpr (kMinimum) acc = vfmsq_f32(acc, vmulq_n_f32(dmin, dx), vcvtq_f32_s32(msum));
  return acc;
}

template <int kChains>
inline float32x4_t Fold(const float32x4_t* chain) {
  if constexpr (kChains == 1) {
    return chain[0];
  } else {
    const float32x4_t even = vaddq_f32(vaddq_f32(chain[0], chain[4]), vaddq_f32(chain[2], chain[6]));
    const float32x4_t odd = vaddq_f32(vaddq_f32(chain[1], chain[5]), vaddq_f32(chain[3], chain[7]));
    return vaddq_f32(even, odd);
  }
}

// The first `rows` lanes.
inline void StoreRows(float32x4_t value, int64_t rows, float* y) {
  if (rows >= kRows) {
    vst1q_f32(y, value);
  } else {
    float lanes[kRows];
    vst1q_f32(lanes, value);
    for (int64_t j = 0; j < rows; ++j) y[j] = lanes[j];
  }
}

// Four row addresses from `first` on; where the matrix ends, its last row again, whose results are not
// stored.
struct RowPointers {
  RowPointers(const MatmulArgs& args, int64_t first) {
    for (int j = 0; j < kRows; ++j) {
      const int64_t r = first + j < args.rows ? first + j : args.rows - 1;
      row[j] = args.weights + static_cast<size_t>(r) * args.row_bytes;
    }
  }
  const std::byte* row[kRows];
};

// --- one activation row ---

// Four scales of 8 bits, from element 4i on.
template <int i>
inline int32x4_t FourScales(int8x16_t scales) {
  const int16x8_t eight = i < 2 ? vmovl_s8(vget_low_s8(scales)) : vmovl_high_s8(scales);
  return i % 2 == 0 ? vmovl_s16(vget_low_s16(eight)) : vmovl_high_s16(eight);
}

// Σ scales[g] · (sum of the lanes of dots[g]), spread over four lanes. Adding across first leaves the sums of
// four groups in the lanes, where their scales are, too: taking each scale to all lanes would cost twice as
// many instructions.
template <int kGroups>
inline int32x4_t ScaledSum(const int32x4_t* dots, int8x16_t scales) {
  static_assert(kGroups == 8 || kGroups == 16);
  int32x4_t sum = vmulq_s32(SumEach(dots[0], dots[1], dots[2], dots[3]), FourScales<0>(scales));
  sum = vmlaq_s32(sum, SumEach(dots[4], dots[5], dots[6], dots[7]), FourScales<1>(scales));
  if constexpr (kGroups == 16) {
    sum = vmlaq_s32(sum, SumEach(dots[8], dots[9], dots[10], dots[11]), FourScales<2>(scales));
    sum = vmlaq_s32(sum, SumEach(dots[12], dots[13], dots[14], dots[15]), FourScales<3>(scales));
  }
  return sum;
}

// The integer sum of a block, spread over four lanes.
template <typename Isa, typename Reader>
inline int32x4_t BlockSum(const Reader& reader, const int8_t* q) {
  const int32x4_t zero = vdupq_n_s32(0);
  if constexpr (requires { &Reader::template ScaledCodes<void (*)(int, int8x16_t, int8x16_t)>; }) {
    int32x4_t sum = zero;
    reader.ScaledCodes([&](int g, int8x16_t a, int8x16_t b) {
      sum = Isa::Dot(sum, a, vld1q_s8(q + 32 * g));
      sum = Isa::Dot(sum, b, vld1q_s8(q + 32 * g + 16));
    });
    return sum;
  } else if constexpr (Reader::kScaled) {
    constexpr int kGroups = Reader::kLength / Reader::kGroup;
    int32x4_t dots[kGroups];
    reader.Codes([&](int g, int8x16_t a, int8x16_t b) {
      const int32x4_t first = Isa::Dot(zero, a, vld1q_s8(q + 32 * g));
      if constexpr (Reader::kGroup == 16) {
        dots[2 * g] = first;
        dots[2 * g + 1] = Isa::Dot(zero, b, vld1q_s8(q + 32 * g + 16));
      } else {
        dots[g] = Isa::Dot(first, b, vld1q_s8(q + 32 * g + 16));
      }
    });
    return ScaledSum<kGroups>(dots, reader.Scales());
  } else {
    int32x4_t sum = zero;
    reader.Codes([&](int g, int8x16_t a, int8x16_t b) {
      sum = Isa::Dot(sum, a, vld1q_s8(q + 32 * g));
      sum = Isa::Dot(sum, b, vld1q_s8(q + 32 * g + 16));
    });
    return sum;
  }
}

// Σ mins[g] · (sum of q over group g), spread over four lanes. `sums` has one entry for each 16 elements.
template <typename Reader>
inline int32x4_t MinimumSum(const Reader& reader, const int16_t* sums) {
  if constexpr (!Reader::kScaled) {
    return vsetq_lane_s32(sums[0] + sums[1], vdupq_n_s32(0), 0);
  } else {
    const int8x16_t mins = reader.Mins();
    const int16x8_t low = vmovl_s8(vget_low_s8(mins));
    const int16x8_t first = vld1q_s16(sums);
    const int16x8_t second = vld1q_s16(sums + 8);
    if constexpr (Reader::kGroup == 16) {
      const int16x8_t high = vmovl_high_s8(mins);
      int32x4_t sum = vmull_s16(vget_low_s16(low), vget_low_s16(first));
      sum = vmlal_high_s16(sum, low, first);
      sum = vmlal_s16(sum, vget_low_s16(high), vget_low_s16(second));
      return vmlal_high_s16(sum, high, second);
    } else {
      const int16x8_t pairs = vpaddq_s16(first, second);
      return vmlal_high_s16(vmull_s16(vget_low_s16(low), vget_low_s16(pairs)), low, pairs);
    }
  }
}

// What one row gives to a step.
struct RowPart {
  float d;
  float dmin;
  int32x4_t isum;
  int32x4_t msum;
};

template <typename Isa, typename Reader>
inline RowPart PartOf(const std::byte* block, const int8_t* q, const int16_t* sums) {
  const Reader reader(block);
  RowPart part = {.d = reader.d(), .dmin = 0, .isum = BlockSum<Isa>(reader, q), .msum = vdupq_n_s32(0)};
  if constexpr (Reader::kMinimum) {
    part.dmin = reader.dmin();
    part.msum = MinimumSum(reader, sums);
  }
  return part;
}

template <typename Isa, typename Reader>
void MatmulOne(const MatmulArgs& args) {
  const int64_t blocks = args.x.columns / Reader::kLength;
  for (int64_t r = 0; r < args.rows; r += kRows) {
    const RowPointers pointers(args, r);
    float32x4_t chain[Reader::kChains];
    for (float32x4_t& acc : chain) acc = vdupq_n_f32(0);
    for (int64_t k = 0; k < blocks; ++k) {
      const int8_t* q = args.x.q + k * Reader::kLength;
      const int16_t* sums = args.x.sums + k * (Reader::kLength / 16);
      const size_t offset = static_cast<size_t>(k) * Reader::kBytes;
      // Spelt out, so that the parts are joined in registers.
      const RowPart a = PartOf<Isa, Reader>(pointers.row[0] + offset, q, sums);
      const RowPart b = PartOf<Isa, Reader>(pointers.row[1] + offset, q, sums);
      const RowPart c = PartOf<Isa, Reader>(pointers.row[2] + offset, q, sums);
      const RowPart d = PartOf<Isa, Reader>(pointers.row[3] + offset, q, sums);
      float32x4_t& acc = chain[k % Reader::kChains];
      acc = Step<Reader::kMinimum>(
          acc, float32x4_t{a.d, b.d, c.d, d.d}, float32x4_t{a.dmin, b.dmin, c.dmin, d.dmin}, args.x.scale[k],
          SumEach(a.isum, b.isum, c.isum, d.isum), SumEach(a.msum, b.msum, c.msum, d.msum));
    }
    StoreRows(Fold<Reader::kChains>(chain), args.rows - r, args.y + r);
  }
}

// --- several activation rows ---

// Four rows of up to kPanelColumns columns, unpacked. Group and block arrays are [group or block][row].
struct Panel {
  alignas(64) int8_t codes[kRows * kPanelColumns];  // in Isa's order: 64 bytes for each 16 columns
  int16_t scales[kPanelGroups * kRows];
  int16_t mins[kPanelGroups * kRows];
  float d[kPanelGroups * kRows];
  float dmin[kPanelBlocks * kRows];
  float32x4_t chains[kBatchTile * kMaxChains];  // [activation row][chain], four weight rows in the lanes
};
static_assert(sizeof(Panel) <= kMatmulScratchBytes);

// Unpacks `blocks` blocks of four rows.
template <typename Isa, typename Reader>
void FillPanel(const RowPointers& pointers, int64_t first_block, int64_t blocks, Panel& panel) {
  constexpr int kGroups = Reader::kLength / Reader::kGroup;
  for (int64_t k = 0; k < blocks; ++k) {
    int8_t codes[kRows][Reader::kLength];
    for (int j = 0; j < kRows; ++j) {
      const Reader reader(pointers.row[j] + static_cast<size_t>(first_block + k) * Reader::kBytes);
      reader.Codes([&](int g, int8x16_t a, int8x16_t b) {
        vst1q_s8(codes[j] + 32 * g, a);
        vst1q_s8(codes[j] + 32 * g + 16, b);
      });
      panel.d[k * kRows + j] = reader.d();
      if constexpr (Reader::kMinimum) panel.dmin[k * kRows + j] = reader.dmin();
      if constexpr (Reader::kScaled) {
        int8_t scales[16];
        int8_t mins[16] = {};
        vst1q_s8(scales, reader.Scales());
        if constexpr (Reader::kMinimum) vst1q_s8(mins, reader.Mins());
        for (int g = 0; g < kGroups; ++g) {
          panel.scales[(k * kGroups + g) * kRows + j] = scales[g];
          panel.mins[(k * kGroups + g) * kRows + j] = mins[g];
        }
      }
    }
    for (int c = 0; c < Reader::kLength; c += 16) {
      const int8x16_t rows[kRows] = {vld1q_s8(codes[0] + c), vld1q_s8(codes[1] + c), vld1q_s8(codes[2] + c),
                                     vld1q_s8(codes[3] + c)};
      Isa::Pack(rows, panel.codes + (k * Reader::kLength + c) * kRows);
    }
  }
}

// total + mins[g][r] · sums[g] in lane r, for one g.
template <int g>
inline int32x4_t AddMinimum(int32x4_t total, const int16_t* mins, int16x8_t sums) {
  return vmlal_laneq_s16(total, vld1_s16(mins + g * kRows), sums, g);
}

// The same for all of the sequence. (In clang the intrinsics are macros that take no parameter pack.)
template <int... g>
inline int32x4_t AddMinimums(int32x4_t total, const int16_t* mins, int16x8_t sums,
                             std::integer_sequence<int, g...>) {
  ((total = AddMinimum<g>(total, mins, sums)), ...);
  return total;
}

// Lane r: Σ_g mins[g][r] · (sum of q over group g) of one block.
template <typename Reader>
inline int32x4_t PanelMinimumSum(const int16_t* mins, const int16_t* sums) {
  if constexpr (!Reader::kScaled) {
    return vdupq_n_s32(sums[0] + sums[1]);
  } else {
    constexpr std::make_integer_sequence<int, 8> kEight;
    const int32x4_t zero = vdupq_n_s32(0);
    const int16x8_t first = vld1q_s16(sums);
    const int16x8_t second = vld1q_s16(sums + 8);
    if constexpr (Reader::kGroup == 32) return AddMinimums(zero, mins, vpaddq_s16(first, second), kEight);
    return AddMinimums(AddMinimums(zero, mins, first, kEight), mins + 8 * kRows, second, kEight);
  }
}

// Elements of an activation row that share a scale.
template <typename Reader>
constexpr int kScaleLength = Reader::kLength < 32 ? 32 : Reader::kLength;

// kBatch activation rows that a panel meets together.
template <int kBatch>
struct ActivationTile {
  const int8_t* q[kBatch];
  const int16_t* sums[kBatch];
  const float* scale[kBatch];
  float32x4_t* chains[kBatch];
};

template <typename Isa, typename Reader, int kBatch>
void RunPanel(const Panel& panel, int64_t blocks, const ActivationTile<kBatch>& x) {
  constexpr int kGroups = Reader::kLength / Reader::kGroup;
  for (int64_t k = 0; k < blocks; ++k) {
    int32x4_t isum[kBatch];
    for (int32x4_t& sum : isum) sum = vdupq_n_s32(0);
    for (int g = 0; g < kGroups; ++g) {
      const int64_t column = k * Reader::kLength + g * Reader::kGroup;
      const int8_t* q[kBatch];
      for (int b = 0; b < kBatch; ++b) q[b] = x.q[b] + column;
      int32x4_t dots[kBatch];
      Isa::template PanelDots<Reader::kGroup, kBatch>(panel.codes + column * kRows, q, dots);
      if constexpr (Reader::kScaled) {
        const int32x4_t scales = vmovl_s16(vld1_s16(panel.scales + (k * kGroups + g) * kRows));
        for (int b = 0; b < kBatch; ++b) isum[b] = vmlaq_s32(isum[b], dots[b], scales);
      } else {
        for (int b = 0; b < kBatch; ++b) isum[b] = vaddq_s32(isum[b], dots[b]);
      }
    }
    const float32x4_t d = vld1q_f32(panel.d + k * kRows);
    const float32x4_t dmin = Reader::kMinimum ? vld1q_f32(panel.dmin + k * kRows) : d;
    for (int b = 0; b < kBatch; ++b) {
      int32x4_t msum = isum[b];
      if constexpr (Reader::kMinimum) {
        msum =
            PanelMinimumSum<Reader>(panel.mins + k * kGroups * kRows, x.sums[b] + k * (Reader::kLength / 16));
      }
      float32x4_t& acc = x.chains[b][k % Reader::kChains];
      const float dx = x.scale[b][k * Reader::kLength / kScaleLength<Reader>];
      acc = Step<Reader::kMinimum>(acc, d, dmin, dx, isum[b], msum);
    }
  }
}

// Runs the panel against activation rows [first, first + count) of the batch tile. Where kBatch is more than
// count, the last row is computed again, into chains that nobody reads.
template <typename Isa, typename Reader, int kBatch>
void RunTile(Panel& panel, const MatmulArgs& args, int64_t first_block, int64_t blocks, int64_t tile,
             int64_t first, int64_t count) {
  float32x4_t unused[kMaxChains] = {};
  ActivationTile<kBatch> x;
  for (int b = 0; b < kBatch; ++b) {
    const int64_t local = first + (b < count ? b : count - 1);
    const int64_t row = tile + local;
    x.q[b] = args.x.q + row * args.x.columns + first_block * Reader::kLength;
    x.sums[b] = args.x.sums + (row * args.x.columns + first_block * Reader::kLength) / 16;
    x.scale[b] = args.x.scale + (row * args.x.columns + first_block * Reader::kLength) / kScaleLength<Reader>;
    x.chains[b] = b < count ? panel.chains + local * kMaxChains : unused;
  }
  RunPanel<Isa, Reader, kBatch>(panel, blocks, x);
}

// kFill: how a panel is unpacked.
template <typename Isa, typename Reader, auto kFill = FillPanel<Isa, Reader>>
void MatmulMany(const MatmulArgs& args) {
  constexpr int64_t kPanelStep =
      kPanelColumns / Reader::kLength;  // a multiple of kChains: chains line up across panels
  static_assert(kPanelStep % Reader::kChains == 0);
  Panel& panel = *new (args.scratch.data()) Panel;
  const int64_t blocks = args.x.columns / Reader::kLength;
  for (int64_t r = 0; r < args.rows; r += kRows) {
    const RowPointers pointers(args, r);
    for (int64_t tile = 0; tile < args.x.batch; tile += kBatchTile) {
      const int64_t count = args.x.batch - tile < kBatchTile ? args.x.batch - tile : kBatchTile;
      for (int64_t i = 0; i < count * kMaxChains; ++i) panel.chains[i] = vdupq_n_f32(0);
      for (int64_t k = 0; k < blocks; k += kPanelStep) {
        const int64_t n = blocks - k < kPanelStep ? blocks - k : kPanelStep;
        kFill(pointers, k, n, panel);
        int64_t b = 0;
        for (; count - b > 2; b += 4) {
          RunTile<Isa, Reader, 4>(panel, args, k, n, tile, b, count - b < 4 ? count - b : 4);
        }
        if (b < count) RunTile<Isa, Reader, 2>(panel, args, k, n, tile, b, count - b);
      }
      for (int64_t b = 0; b < count; ++b) {
        StoreRows(Fold<Reader::kChains>(panel.chains + b * kMaxChains), args.rows - r,
                  args.y + (tile + b) * args.y_stride + r);
      }
    }
  }
}

template <typename Isa, typename Reader>
void Matmul(const MatmulArgs& args) {
  static_assert(Reader::kLength <= 256);
  if (args.x.batch == 1) {
    MatmulOne<Isa, Reader>(args);
  } else {
    MatmulMany<Isa, Reader>(args);
  }
}

// The quantised part of an instruction set's table.
template <typename Isa>
constexpr void AddQuantised(std::array<MatmulFn, formats::kDTypeLimit>& table) {
  using enum DType;
  const auto set = [&table](DType type, MatmulFn function) { table[static_cast<size_t>(type)] = function; };
  set(kQ4_0, Matmul<Isa, ReaderQ4_0>);
  set(kQ4_1, Matmul<Isa, ReaderQ4_1>);
  set(kQ5_0, Matmul<Isa, ReaderQ5_0>);
  set(kQ5_1, Matmul<Isa, ReaderQ5_1>);
  set(kQ8_0, Matmul<Isa, ReaderQ8_0>);
  set(kQ2_K, Matmul<Isa, ReaderQ2_K>);
  set(kQ3_K, Matmul<Isa, ReaderQ3_K>);
  set(kQ4_K, Matmul<Isa, ReaderQ4_K>);
  set(kQ5_K, Matmul<Isa, ReaderQ5_K>);
  set(kQ6_K, Matmul<Isa, ReaderQ6_K>);
  set(kIQ4_NL, Matmul<Isa, ReaderIQ4_NL>);
  set(kIQ4_XS, Matmul<Isa, ReaderIQ4_XS>);
  set(kMXFP4, Matmul<Isa, ReaderMXFP4>);
  set(kQ2_0, Matmul<Isa, ReaderQ2_0>);
  set(kQ1_0, Matmul<Isa, ReaderQ1_0>);
  set(kTQ1_0, Matmul<Isa, ReaderTQ1_0>);
  set(kTQ2_0, Matmul<Isa, ReaderTQ2_0>);
  set(kIQ1_S, Matmul<Isa, ReaderIQ1_S>);
  set(kIQ1_M, Matmul<Isa, ReaderIQ1_M>);
  set(kIQ2_XXS, Matmul<Isa, ReaderIQ2_XXS>);
  set(kIQ2_XS, Matmul<Isa, ReaderIQ2_XS>);
  set(kIQ2_S, Matmul<Isa, ReaderIQ2_S>);
  set(kIQ3_XXS, Matmul<Isa, ReaderIQ3_XXS>);
  set(kIQ3_S, Matmul<Isa, ReaderIQ3_S>);
}

}  // namespace
}  // namespace sluice::kernels::arm
