// Inside formats/ only: the unpackers that unpack.cc's table points to, one family per file, and what they
// share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/half.h"
#include "formats/blocks.h"
#include "formats/unpack.h"

namespace sluice::formats {

// legacy.cc
void UnpackQ4_0(const BlockQ4_0& block, UnpackedBlock& out);
void UnpackQ4_1(const BlockQ4_1& block, UnpackedBlock& out);
void UnpackQ5_0(const BlockQ5_0& block, UnpackedBlock& out);
void UnpackQ5_1(const BlockQ5_1& block, UnpackedBlock& out);
void UnpackQ8_0(const BlockQ8_0& block, UnpackedBlock& out);
void UnpackQ1_0(const BlockQ1_0& block, UnpackedBlock& out);
void UnpackQ2_0(const BlockQ2_0& block, UnpackedBlock& out);
// k_quants.cc
void UnpackQ2_K(const BlockQ2_K& block, UnpackedBlock& out);
void UnpackQ3_K(const BlockQ3_K& block, UnpackedBlock& out);
void UnpackQ4_K(const BlockQ4_K& block, UnpackedBlock& out);
void UnpackQ5_K(const BlockQ5_K& block, UnpackedBlock& out);
void UnpackQ6_K(const BlockQ6_K& block, UnpackedBlock& out);
// i_quants.cc
void UnpackIQ1_S(const BlockIQ1_S& block, UnpackedBlock& out);
void UnpackIQ1_M(const BlockIQ1_M& block, UnpackedBlock& out);
void UnpackIQ2_XXS(const BlockIQ2_XXS& block, UnpackedBlock& out);
void UnpackIQ2_XS(const BlockIQ2_XS& block, UnpackedBlock& out);
void UnpackIQ2_S(const BlockIQ2_S& block, UnpackedBlock& out);
void UnpackIQ3_XXS(const BlockIQ3_XXS& block, UnpackedBlock& out);
void UnpackIQ3_S(const BlockIQ3_S& block, UnpackedBlock& out);
void UnpackIQ4_NL(const BlockIQ4_NL& block, UnpackedBlock& out);
void UnpackIQ4_XS(const BlockIQ4_XS& block, UnpackedBlock& out);
// ternary.cc
void UnpackTQ1_0(const BlockTQ1_0& block, UnpackedBlock& out);
void UnpackTQ2_0(const BlockTQ2_0& block, UnpackedBlock& out);
// fp4.cc
void UnpackMXFP4(const BlockMXFP4& block, UnpackedBlock& out);
void UnpackNVFP4(const BlockNVFP4& block, UnpackedBlock& out);

// One scale for the whole block, no minimum.
inline void SetPlainScale(float d, int length, UnpackedBlock& out) {
  out.d = d;
  out.dmin = 0;
  for (int g = 0; g < length / kGroupLength; ++g) {
    out.scales[g] = 1;
    out.mins[g] = 0;
  }
}

// The scale of a group of 32 elements, no minimum.
inline void SetScale32(int group32, int scale, UnpackedBlock& out) {
  out.scales[2 * group32] = out.scales[2 * group32 + 1] = scale;
  out.mins[2 * group32] = out.mins[2 * group32 + 1] = 0;
}

}  // namespace sluice::formats
