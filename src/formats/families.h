// Inside formats/ only: the unpackers and packers that the tables of unpack.cc and pack.cc point to, one
// family per file, and what they share.
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
void PackQ4_0(const UnpackedBlock& in, BlockQ4_0& block);
void UnpackQ4_1(const BlockQ4_1& block, UnpackedBlock& out);
void PackQ4_1(const UnpackedBlock& in, BlockQ4_1& block);
void UnpackQ5_0(const BlockQ5_0& block, UnpackedBlock& out);
void PackQ5_0(const UnpackedBlock& in, BlockQ5_0& block);
void UnpackQ5_1(const BlockQ5_1& block, UnpackedBlock& out);
void PackQ5_1(const UnpackedBlock& in, BlockQ5_1& block);
void UnpackQ8_0(const BlockQ8_0& block, UnpackedBlock& out);
void PackQ8_0(const UnpackedBlock& in, BlockQ8_0& block);
void UnpackQ1_0(const BlockQ1_0& block, UnpackedBlock& out);
void PackQ1_0(const UnpackedBlock& in, BlockQ1_0& block);
void UnpackQ2_0(const BlockQ2_0& block, UnpackedBlock& out);
void PackQ2_0(const UnpackedBlock& in, BlockQ2_0& block);
// k_quants.cc
void UnpackQ2_K(const BlockQ2_K& block, UnpackedBlock& out);
void PackQ2_K(const UnpackedBlock& in, BlockQ2_K& block);
void UnpackQ3_K(const BlockQ3_K& block, UnpackedBlock& out);
void PackQ3_K(const UnpackedBlock& in, BlockQ3_K& block);
void UnpackQ4_K(const BlockQ4_K& block, UnpackedBlock& out);
void PackQ4_K(const UnpackedBlock& in, BlockQ4_K& block);
void UnpackQ5_K(const BlockQ5_K& block, UnpackedBlock& out);
void PackQ5_K(const UnpackedBlock& in, BlockQ5_K& block);
void UnpackQ6_K(const BlockQ6_K& block, UnpackedBlock& out);
void PackQ6_K(const UnpackedBlock& in, BlockQ6_K& block);
// i_quants.cc
void UnpackIQ1_S(const BlockIQ1_S& block, UnpackedBlock& out);
void PackIQ1_S(const UnpackedBlock& in, BlockIQ1_S& block);
void UnpackIQ1_M(const BlockIQ1_M& block, UnpackedBlock& out);
void PackIQ1_M(const UnpackedBlock& in, BlockIQ1_M& block);
void UnpackIQ2_XXS(const BlockIQ2_XXS& block, UnpackedBlock& out);
void PackIQ2_XXS(const UnpackedBlock& in, BlockIQ2_XXS& block);
void UnpackIQ2_XS(const BlockIQ2_XS& block, UnpackedBlock& out);
void PackIQ2_XS(const UnpackedBlock& in, BlockIQ2_XS& block);
void UnpackIQ2_S(const BlockIQ2_S& block, UnpackedBlock& out);
void PackIQ2_S(const UnpackedBlock& in, BlockIQ2_S& block);
void UnpackIQ3_XXS(const BlockIQ3_XXS& block, UnpackedBlock& out);
void PackIQ3_XXS(const UnpackedBlock& in, BlockIQ3_XXS& block);
void UnpackIQ3_S(const BlockIQ3_S& block, UnpackedBlock& out);
void PackIQ3_S(const UnpackedBlock& in, BlockIQ3_S& block);
void UnpackIQ4_NL(const BlockIQ4_NL& block, UnpackedBlock& out);
void PackIQ4_NL(const UnpackedBlock& in, BlockIQ4_NL& block);
void UnpackIQ4_XS(const BlockIQ4_XS& block, UnpackedBlock& out);
void PackIQ4_XS(const UnpackedBlock& in, BlockIQ4_XS& block);
// ternary.cc
void UnpackTQ1_0(const BlockTQ1_0& block, UnpackedBlock& out);
void PackTQ1_0(const UnpackedBlock& in, BlockTQ1_0& block);
void UnpackTQ2_0(const BlockTQ2_0& block, UnpackedBlock& out);
void PackTQ2_0(const UnpackedBlock& in, BlockTQ2_0& block);
// fp4.cc
void UnpackMXFP4(const BlockMXFP4& block, UnpackedBlock& out);
void PackMXFP4(const UnpackedBlock& in, BlockMXFP4& block);
void UnpackNVFP4(const BlockNVFP4& block, UnpackedBlock& out);
void PackNVFP4(const UnpackedBlock& in, BlockNVFP4& block);

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

inline Half ToHalf(float value) {
  const uint16_t bits = F32ToF16(value);
  return {{static_cast<Byte>(bits & 0xff), static_cast<Byte>(bits >> 8)}};
}

}  // namespace sluice::formats
