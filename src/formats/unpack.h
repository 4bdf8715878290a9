// Unpacking: one block of any quantised format → one common integer form. This is the definition of the
// formats: decoding (decode.h) and the scalar kernels are built on it, and the SIMD kernels are held to
// those.
//
//   x[i] = (d · scales[g]) · codes[i] − (dmin · mins[g]),   g = i / 16
//
// computed in float in exactly that order. d·scales[g] is exact wherever d is finite and normal.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/dtype.h"

namespace sluice::formats {

inline constexpr int kMaxBlockLength = 256;
inline constexpr int kGroupLength = 16;
inline constexpr int kMaxGroups = kMaxBlockLength / kGroupLength;

// What each format puts in (docs/formats.md has the same with the ranges). Formats whose own groups have 32
// elements repeat each scale twice; formats without inner scales have scales of 1; formats without a minimum
// have dmin 0, mins 0.
//   Q4_0 Q5_0 Q8_0 Q1_0 Q2_0 TQ1_0 TQ2_0   d = the block's f16, codes centred (Q4_0: −8 … 7)
//   Q4_1 Q5_1                   codes from 0, dmin = −m, mins 1
//   Q2_K Q4_K Q5_K              codes from 0, scales and mins unsigned (Q2_K: 4 bits, else 6)
//   Q3_K Q6_K IQ4_XS            codes centred, scales signed (−32 … 31; Q6_K: −128 … 127)
//   IQ2_* IQ3_XXS IQ3_S         codes = ±grid (≤ 62), scales = 2s + 1, d = f16 / 8, / 4, / 1
//   IQ1_S IQ1_M                 codes = 8·grid ± 1, scales = 2s + 1, d = f16 / 8
//   IQ4_NL MXFP4                codes = the table's values; MXFP4: d = 2^(e − 128)
//   NVFP4                       d = 2^−10, scales = 512 · UE4M3 (0 … 245760, exact)
struct UnpackedBlock {
  float d;
  float dmin;
  int32_t scales[kMaxGroups];
  int32_t mins[kMaxGroups];
  alignas(64) int8_t codes[kMaxBlockLength];
};

// True for the block formats, false for F32, F16, BF16, F64 and the integers.
bool IsQuantised(DType dtype);

// Fills the first Traits(dtype).block_length codes and their groups; what lies behind them is left as it was.
// `block` has Traits(dtype).block_bytes bytes at any alignment. dtype must be quantised.
using UnpackFn = void (*)(const std::byte* block, UnpackedBlock& out);
UnpackFn UnpackerFor(DType dtype);

}  // namespace sluice::formats
