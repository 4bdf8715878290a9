// The inner loops of full tiles with AVX-512 VNNI: a panel of 32 rows × 7 activation rows (batch.h).
//
// In assembly, because the registers decide: 14 integer sums, 14 that they are added to, two of codes and one
// of activations. The units that multiply want ten sums under way, and every one more is slack for them. GCC
// 12 copies accumulators for each turn of a loop, spills some where the loop is a long one, and takes them
// all through memory where it makes a call.
//
//   zmm0 … 13   integer sums of a run: activation row c × rows 16h … 16h + 15 of the panel in 2c + h
//
//   zmm14 … 27  likewise, what they are added to
//
//   zmm28, 29   codes, or scales, of both halves of the panel
//
//   zmm30       activations, or what a sum is multiplied with
//
// Templates of internal linkage (isa_avx2.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::kernels {
namespace {

constexpr int kTileColumns = 7;
constexpr int kTileRows = 32;

// clang-format off
#define SLUICE_TILE_REGISTERS                                                                              \
  "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21",   \
      "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30"

// apply(sum, what it goes to, scales of its half) for all sums.
#define SLUICE_TILE_EACH(apply)                                                                  \
  apply("0", "14", "28") apply("1", "15", "29") apply("2", "16", "28") apply("3", "17", "29")    \
  apply("4", "18", "28") apply("5", "19", "29") apply("6", "20", "28") apply("7", "21", "29")    \
  apply("8", "22", "28") apply("9", "23", "29") apply("10", "24", "28") apply("11", "25", "29")  \
  apply("12", "26", "28") apply("13", "27", "29")

#define SLUICE_TILE_CLEAR(sum, total, scale) "vpxord %%zmm" sum ", %%zmm" sum ", %%zmm" sum "\n\t"
#define SLUICE_TILE_CLEAR_TOTAL(sum, total, scale) SLUICE_TILE_CLEAR(total, , )
#define SLUICE_TILE_STORE(sum, total, scale) "vmovdqu64 %%zmm" sum ", 64*" sum "(%[sums])\n\t"
#define SLUICE_TILE_STORE_TOTAL(sum, total, scale) "vmovdqu64 %%zmm" total ", 64*" sum "(%[sums])\n\t"
#define SLUICE_TILE_LOAD_D "vmovups (%[d]), %%zmm28\n\tvmovups 64(%[d]), %%zmm29\n\t"
// The float at sums += d · the activations' scale · the integer.
#define SLUICE_TILE_FINISH(sum, integer, d)                                                        \
  "vcvtdq2ps %%zmm" integer ", %%zmm" integer "\n\t"                                               \
  "vmulps %c[apart]*(" sum ">>1)(%[x_scales])%{1to16%}, %%zmm" d ", %%zmm30\n\t"                   \
  "vfmadd213ps 64*" sum "(%[sums]), %%zmm30, %%zmm" integer "\n\t"                                 \
  "vmovups %%zmm" integer ", 64*" sum "(%[sums])\n\t"
#define SLUICE_TILE_FINISH_SUM(sum, total, d) SLUICE_TILE_FINISH(sum, sum, d)
#define SLUICE_TILE_FINISH_TOTAL(sum, total, d) SLUICE_TILE_FINISH(sum, total, d)
// total += the sum's pairs of int16 · scale's
#define SLUICE_TILE_ADD_PAIRS(sum, total, scale) \
  "vpdpwssd %%zmm" scale ", %%zmm" sum ", %%zmm" total "\n\t"
// total += sum · scale
#define SLUICE_TILE_ADD(sum, total, scale)                  \
  "vpmulld %%zmm" scale ", %%zmm" sum ", %%zmm" sum "\n\t"  \
  "vpaddd %%zmm" sum ", %%zmm" total ", %%zmm" total "\n\t"

// Four elements of one activation row.
#define SLUICE_TILE_COLUMN(q, sum0, sum1)          \
  "vpbroadcastd " q ", %%zmm30\n\t"                \
  "vpdpbusd %%zmm30, %%zmm28, %%zmm" sum0 "\n\t"   \
  "vpdpbusd %%zmm30, %%zmm29, %%zmm" sum1 "\n\t"
// Elements 4n … 4n + 3 of all.
#define SLUICE_TILE_STEP(n)                                  \
  "vmovdqa64 128*" n "(%[codes]), %%zmm28\n\t"               \
  "vmovdqa64 128*" n "+64(%[codes]), %%zmm29\n\t"            \
  SLUICE_TILE_COLUMN("4*" n "(%[q])", "0", "1")              \
  SLUICE_TILE_COLUMN("4*" n "(%[q],%[stride])", "2", "3")    \
  SLUICE_TILE_COLUMN("4*" n "(%[q],%[stride],2)", "4", "5")  \
  SLUICE_TILE_COLUMN("4*" n "(%[q],%[stride3])", "6", "7")   \
  SLUICE_TILE_COLUMN("4*" n "(%[q],%[stride],4)", "8", "9")  \
  SLUICE_TILE_COLUMN("4*" n "(%[q],%[stride5])", "10", "11") \
  SLUICE_TILE_COLUMN("4*" n "(%[q],%[stride3],2)", "12", "13")
// A run of 8 · %c[pairs] elements; codes and q move on behind it.
#define SLUICE_TILE_RUN                                               \
  ".rept %c[pairs]\n\t" SLUICE_TILE_STEP("0") SLUICE_TILE_STEP("1")   \
  "add $256, %[codes]\n\t"                                            \
  "add $8, %[q]\n\t"                                                  \
  ".endr\n\t"

// The sums of activation row c begin at the int32 of starts[c · kApart].
#define SLUICE_TILE_START(c, sum0, sum1)                         \
  "vpbroadcastd %c[apart]*" c "(%[starts]), %%zmm" sum0 "\n\t"   \
  "vmovdqa64 %%zmm" sum0 ", %%zmm" sum1 "\n\t"
#define SLUICE_TILE_STARTS                                                                            \
  SLUICE_TILE_START("0", "0", "1") SLUICE_TILE_START("1", "2", "3") SLUICE_TILE_START("2", "4", "5")  \
  SLUICE_TILE_START("3", "6", "7") SLUICE_TILE_START("4", "8", "9") SLUICE_TILE_START("5", "10", "11")  \
  SLUICE_TILE_START("6", "12", "13")
#define SLUICE_TILE_ZEROS SLUICE_TILE_EACH(SLUICE_TILE_CLEAR)
// clang-format on

// Where a tile's activations are: row c at q + c · stride.
struct TileActivations {
  const int8_t* q;
  int64_t stride;
};

// Where the products of a block go: sums [kTileColumns, kTileRows] += d [kTileRows] · x_scales[c · kApart] ·
// the integers.
struct TileSums {
  float* sums;
  const float* d;
  const float* x_scales;
};

// The products of a block of 256: Σ codes · activations, from starts[c · kApart] on or from 0. Either the
// integers → sums [kTileColumns, kTileRows], or as TileSums says.
#define SLUICE_TILE_FOLDED(begin, end, ...)                                                        \
  asm volatile(begin "1:\n\t" SLUICE_TILE_RUN                                                      \
                     "dec %[turns]\n\t"                                                            \
                     "jnz 1b\n\t" end                                                              \
               : [codes] "+r"(codes), [q] "+r"(x.q), [turns] "+r"(turns)                           \
               : [stride] "r"(x.stride), [stride3] "r"(3 * x.stride), [stride5] "r"(5 * x.stride), \
                 [starts] "r"(starts), [pairs] "i"(4), [apart] "i"(kApart * 4), __VA_ARGS__        \
               : SLUICE_TILE_REGISTERS)
#define SLUICE_TILE_FOLDEDS(end, ...)                         \
  int64_t turns = 8;                                          \
  if constexpr (kStarts) {                                    \
    SLUICE_TILE_FOLDED(SLUICE_TILE_STARTS, end, __VA_ARGS__); \
  } else {                                                    \
    SLUICE_TILE_FOLDED(SLUICE_TILE_ZEROS, end, __VA_ARGS__);  \
  }
template <bool kStarts, int kApart>
inline void SumFoldedBlock(const uint8_t* codes, TileActivations x, const int32_t* starts, int32_t* sums) {
  SLUICE_TILE_FOLDEDS(SLUICE_TILE_EACH(SLUICE_TILE_STORE), [sums] "r"(sums))
}
template <bool kStarts, int kApart>
inline void SumFoldedBlock(const uint8_t* codes, TileActivations x, const int32_t* starts, TileSums to) {
  SLUICE_TILE_FOLDEDS(SLUICE_TILE_LOAD_D SLUICE_TILE_EACH(SLUICE_TILE_FINISH_SUM), [sums] "r"(to.sums),
                      [d] "r"(to.d), [x_scales] "r"(to.x_scales))
}
#undef SLUICE_TILE_FOLDED
#undef SLUICE_TILE_FOLDEDS

// The same of a block in groups: Σ over the groups of scale · Σ codes · activations. The sum of each run of
// kRun elements is multiplied by what its group has in scales [groups, kTileRows]; it begins at starts[c ·
// kApart …], one after the other kStartStep apart, or at 0. kPairs: sums and scales count as two int16 each.
// clang-format off
#define SLUICE_TILE_BLOCK(begin, add, end, ...) \
  asm volatile(SLUICE_TILE_EACH(SLUICE_TILE_CLEAR_TOTAL) "1:\n\t"                                       \
               ".rept %c[runs]\n\t" begin "add %[start_step], %[starts]\n\t" SLUICE_TILE_RUN            \
               "vmovdqu64 (%[scales]), %%zmm28\n\t"                                                     \
               "vmovdqu64 64(%[scales]), %%zmm29\n\t" SLUICE_TILE_EACH(add)                             \
               ".endr\n\t"                                                                              \
               "add $128, %[scales]\n\t"                                                                \
               "dec %[groups]\n\t"                                                                      \
               "jnz 1b\n\t" end                                                                         \
               : [codes] "+r"(codes), [q] "+r"(x.q), [scales] "+r"(scales), [starts] "+r"(starts),      \
                 [groups] "+r"(groups)                                                                  \
               : [stride] "r"(x.stride), [stride3] "r"(3 * x.stride), [stride5] "r"(5 * x.stride),      \
                 [pairs] "i"(kRun / 8), [runs] "i"(kGroup / kRun), [start_step] "i"(kStartStep * 4),    \
                 [apart] "i"(kApart * 4), __VA_ARGS__                                                   \
               : SLUICE_TILE_REGISTERS)
#define SLUICE_TILE_BLOCKS(end, ...)                                                \
  int64_t groups = 256 / kGroup;                                                    \
  if constexpr (kStarts && kPairs) {                                                \
    SLUICE_TILE_BLOCK(SLUICE_TILE_STARTS, SLUICE_TILE_ADD_PAIRS, end, __VA_ARGS__); \
  } else if constexpr (kStarts) {                                                   \
    SLUICE_TILE_BLOCK(SLUICE_TILE_STARTS, SLUICE_TILE_ADD, end, __VA_ARGS__);       \
  } else if constexpr (kPairs) {                                                    \
    SLUICE_TILE_BLOCK(SLUICE_TILE_ZEROS, SLUICE_TILE_ADD_PAIRS, end, __VA_ARGS__);  \
  } else {                                                                          \
    SLUICE_TILE_BLOCK(SLUICE_TILE_ZEROS, SLUICE_TILE_ADD, end, __VA_ARGS__);        \
  }
// clang-format on
template <int kGroup, int kRun, bool kStarts, int kStartStep, bool kPairs, int kApart>
inline void SumScaledBlock(const uint8_t* codes, TileActivations x, const int32_t* scales,
                           const int32_t* starts, int32_t* sums) {
  SLUICE_TILE_BLOCKS(SLUICE_TILE_EACH(SLUICE_TILE_STORE_TOTAL), [sums] "r"(sums))
}
template <int kGroup, int kRun, bool kStarts, int kStartStep, bool kPairs, int kApart>
inline void SumScaledBlock(const uint8_t* codes, TileActivations x, const int32_t* scales,
                           const int32_t* starts, TileSums to) {
  SLUICE_TILE_BLOCKS(SLUICE_TILE_LOAD_D SLUICE_TILE_EACH(SLUICE_TILE_FINISH_TOTAL), [sums] "r"(to.sums),
                     [d] "r"(to.d), [x_scales] "r"(to.x_scales))
}
#undef SLUICE_TILE_BLOCK
#undef SLUICE_TILE_BLOCKS

// sums[c · kApart, row] (in rows of the panel) += d[block, row] · scales[c · kApart] · Σ over 32 elements of
// codes · activations, as an integer that begins at starts[c · kApart]; `blocks` of them. Codes and d follow
// one another; activations, starts and scales are those of every eighth block. Float operations in the order
// of docs/arithmetic.md.
// clang-format off
#define SLUICE_TILE_LOAD_CHAIN(sum, total, scale) \
  "vmovups %c[sums_apart]*(" sum ">>1)+64*(" sum "&1)(%[sums]), %%zmm" total "\n\t"
#define SLUICE_TILE_STORE_CHAIN(sum, total, scale) \
  "vmovups %%zmm" total ", %c[sums_apart]*(" sum ">>1)+64*(" sum "&1)(%[sums])\n\t"
#define SLUICE_TILE_END_HALF(c, d, sum, total)                           \
  "vcvtdq2ps %%zmm" sum ", %%zmm" sum "\n\t"                             \
  "vmulps %c[apart]*" c "(%[scales])%{1to16%}, %%zmm" d ", %%zmm30\n\t"  \
  "vfmadd231ps %%zmm30, %%zmm" sum ", %%zmm" total "\n\t"
#define SLUICE_TILE_END_BLOCK(c, sum0, sum1, total0, total1) \
  SLUICE_TILE_END_HALF(c, "28", sum0, total0) SLUICE_TILE_END_HALF(c, "29", sum1, total1)
template <int kApart, int kSumsApart>
inline void AddChain(const uint8_t* codes, TileActivations x, const float* d, const int32_t* starts,
                     const float* scales, int64_t blocks, float* sums) {
  if (blocks == 0) return;
  asm volatile(SLUICE_TILE_EACH(SLUICE_TILE_LOAD_CHAIN) "1:\n\t"
               SLUICE_TILE_STARTS
               SLUICE_TILE_RUN
               SLUICE_TILE_LOAD_D
               SLUICE_TILE_END_BLOCK("0", "0", "1", "14", "15") SLUICE_TILE_END_BLOCK("1", "2", "3", "16", "17")
               SLUICE_TILE_END_BLOCK("2", "4", "5", "18", "19") SLUICE_TILE_END_BLOCK("3", "6", "7", "20", "21")
               SLUICE_TILE_END_BLOCK("4", "8", "9", "22", "23") SLUICE_TILE_END_BLOCK("5", "10", "11", "24", "25")
               SLUICE_TILE_END_BLOCK("6", "12", "13", "26", "27")
               "add $128, %[d]\n\t"
               "add $224, %[q]\n\t"
               "add $32, %[starts]\n\t"
               "add $32, %[scales]\n\t"
               "dec %[blocks]\n\t"
               "jnz 1b\n\t" SLUICE_TILE_EACH(SLUICE_TILE_STORE_CHAIN)
               : [codes] "+r"(codes), [q] "+r"(x.q), [d] "+r"(d), [starts] "+r"(starts), [scales] "+r"(scales),
                 [blocks] "+r"(blocks)
               : [stride] "r"(x.stride), [stride3] "r"(3 * x.stride), [stride5] "r"(5 * x.stride),
                 [sums] "r"(sums), [pairs] "i"(4), [apart] "i"(kApart * 4), [sums_apart] "i"(kSumsApart * 4)
               : SLUICE_TILE_REGISTERS);
}

// clang-format on
#undef SLUICE_TILE_LOAD_CHAIN
#undef SLUICE_TILE_STORE_CHAIN
#undef SLUICE_TILE_END_HALF
#undef SLUICE_TILE_END_BLOCK
#undef SLUICE_TILE_REGISTERS
#undef SLUICE_TILE_EACH
#undef SLUICE_TILE_CLEAR
#undef SLUICE_TILE_CLEAR_TOTAL
#undef SLUICE_TILE_STORE
#undef SLUICE_TILE_STORE_TOTAL
#undef SLUICE_TILE_LOAD_D
#undef SLUICE_TILE_FINISH
#undef SLUICE_TILE_FINISH_SUM
#undef SLUICE_TILE_FINISH_TOTAL
#undef SLUICE_TILE_ADD_PAIRS
#undef SLUICE_TILE_ADD
#undef SLUICE_TILE_COLUMN
#undef SLUICE_TILE_STEP
#undef SLUICE_TILE_RUN
#undef SLUICE_TILE_START
#undef SLUICE_TILE_STARTS
#undef SLUICE_TILE_ZEROS

}  // namespace
}  // namespace sluice::kernels
