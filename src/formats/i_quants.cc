// Code-book formats: IQ1 to IQ3 name whole vectors of 8 or 4 elements by an index into a grid; IQ4 maps each
// 4-bit code through a table of 16 values.
#include <cstdlib>

#include "formats/codebooks.h"
#include "formats/families.h"

namespace sluice::formats {
namespace {

// codes[j] = ±element j of `grid`; minus where bit j of `signs` is set. Entry: uint64_t (8 elements) or
// uint32_t (4).
template <typename Entry>
void PutSigned(Entry grid, uint32_t signs, int8_t* codes) {
  for (size_t j = 0; j < sizeof(Entry); ++j) {
    const int value = static_cast<int>((grid >> (8 * j)) & 0xff);
    codes[j] = static_cast<int8_t>((signs >> j) & 1 ? -value : value);
  }
}

// IQ1: codes[j] = 8 · element ± 1, in eighths, so that the shift by ±1/8 stays an integer.
void PutShifted(uint64_t grid, bool minus, int8_t* codes) {
  for (int j = 0; j < 8; ++j) {
    const auto value = static_cast<int8_t>((grid >> (8 * j)) & 0xff);
    codes[j] = static_cast<int8_t>(8 * value + (minus ? -1 : 1));
  }
}

// 16 bytes of nibbles → 32 values: low nibbles first, then the high ones.
void PutTableValues(const Byte* qs, int8_t* codes) {
  for (int j = 0; j < 16; ++j) {
    codes[j] = kValuesIQ4_NL[qs[j] & 15];
    codes[j + 16] = kValuesIQ4_NL[qs[j] >> 4];
  }
}

// 2s + 1 for one nibble for each 16 elements, as IQ2_XS and IQ2_S have it.
void SetNibbleScales16(const Byte* scales, UnpackedBlock& out) {
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = 2 * ((scales[g / 2] >> (4 * (g % 2))) & 15) + 1;
    out.mins[g] = 0;
  }
}

// --- The inverses. ---

// The index in a grid of the vector with these magnitudes.
template <typename Entry, size_t kEntries>
uint32_t FindEntry(const std::array<Entry, kEntries>& grid, const int8_t* codes) {
  Entry entry = 0;
  for (size_t j = 0; j < sizeof(Entry); ++j)
    entry |= static_cast<Entry>(static_cast<uint8_t>(std::abs(codes[j]))) << (8 * j);
  return GridIndex(grid, entry);
}

// Bit j is set where element j is negative.
uint32_t SignsOf(const int8_t* codes) {
  uint32_t signs = 0;
  for (int j = 0; j < 8; ++j) signs |= (codes[j] < 0 ? 1u : 0u) << j;
  return signs;
}

// The inverse of PutShifted.
struct Shifted {
  uint32_t index;
  bool minus;
};
Shifted FindShifted(const int8_t* codes) {
  uint64_t entry = 0;
  const int first = (codes[0] + 1) >> 3;  // floor(±1 + 8·v + 1) / 8 is v for either sign
  for (int j = 0; j < 8; ++j)
    entry |= static_cast<uint64_t>(static_cast<uint8_t>((codes[j] + 1) >> 3)) << (8 * j);
  return {GridIndex(kGridIQ1, entry), codes[0] < 8 * first};
}

void PutTableIndices(const int8_t* codes, Byte* qs) {
  for (int j = 0; j < 16; ++j)
    qs[j] = static_cast<Byte>(IndexOf(kValuesIQ4_NL, codes[j]) | IndexOf(kValuesIQ4_NL, codes[j + 16]) << 4);
}

// The nibble of a scale 2s + 1.
uint32_t ScaleNibble(const UnpackedBlock& in, int group16) {
  return static_cast<uint32_t>(in.scales[group16]) >> 1;
}

void PackNibbleScales16(const UnpackedBlock& in, Byte* scales) {
  for (int g = 0; g < 16; g += 2)
    scales[g / 2] = static_cast<Byte>(ScaleNibble(in, g) | ScaleNibble(in, g + 1) << 4);
}

}  // namespace

void UnpackIQ2_XXS(const BlockIQ2_XXS& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits()) * 0.125f;
  out.dmin = 0;
  for (int g = 0; g < 8; ++g) {  // groups of 32
    const Byte* indices = block.qs + 8 * g;
    const uint32_t packed = Load32(indices + 4);
    SetScale32(g, 2 * static_cast<int>(packed >> 28) + 1, out);
    for (int k = 0; k < 4; ++k) {
      PutSigned(kGridIQ2_XXS[indices[k]], ExpandSigns((packed >> (7 * k)) & 127), out.codes + 32 * g + 8 * k);
    }
  }
}
void PackIQ2_XXS(const UnpackedBlock& in, BlockIQ2_XXS& block) {
  block.d = ToHalf(8 * in.d);
  for (int g = 0; g < 8; ++g) {
    uint32_t packed = ScaleNibble(in, 2 * g) << 28;
    for (int k = 0; k < 4; ++k) {
      const int8_t* codes = in.codes + 32 * g + 8 * k;
      block.qs[8 * g + k] = static_cast<Byte>(FindEntry(kGridIQ2_XXS, codes));
      packed |= (SignsOf(codes) & 127) << (7 * k);
    }
    Store32(packed, block.qs + 8 * g + 4);
  }
}

void UnpackIQ2_XS(const BlockIQ2_XS& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits()) * 0.125f;
  out.dmin = 0;
  SetNibbleScales16(block.scales, out);
  for (int v = 0; v < 32; ++v) {
    const uint32_t packed = Load16(block.qs + 2 * v);
    PutSigned(kGridIQ2_XS[packed & 511], ExpandSigns(packed >> 9), out.codes + 8 * v);
  }
}
void PackIQ2_XS(const UnpackedBlock& in, BlockIQ2_XS& block) {
  block.d = ToHalf(8 * in.d);
  PackNibbleScales16(in, block.scales);
  for (int v = 0; v < 32; ++v) {
    const int8_t* codes = in.codes + 8 * v;
    Store16(FindEntry(kGridIQ2_XS, codes) | (SignsOf(codes) & 127) << 9, block.qs + 2 * v);
  }
}

void UnpackIQ2_S(const BlockIQ2_S& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits()) * 0.125f;
  out.dmin = 0;
  SetNibbleScales16(block.scales, out);
  for (int v = 0; v < 32; ++v) {
    const uint32_t index = block.qs[v] | (((block.qh[v / 4] >> (2 * (v % 4))) & 3u) << 8);
    PutSigned(kGridIQ2_S[index], block.signs[v], out.codes + 8 * v);
  }
}
void PackIQ2_S(const UnpackedBlock& in, BlockIQ2_S& block) {
  block = {};
  block.d = ToHalf(8 * in.d);
  PackNibbleScales16(in, block.scales);
  for (int v = 0; v < 32; ++v) {
    const uint32_t index = FindEntry(kGridIQ2_S, in.codes + 8 * v);
    block.qs[v] = static_cast<Byte>(index & 255);
    block.qh[v / 4] |= static_cast<Byte>((index >> 8) << (2 * (v % 4)));
    block.signs[v] = static_cast<Byte>(SignsOf(in.codes + 8 * v));
  }
}

void UnpackIQ3_XXS(const BlockIQ3_XXS& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits()) * 0.25f;
  out.dmin = 0;
  for (int g = 0; g < 8; ++g) {
    const uint32_t packed = Load32(block.scales_and_signs + 4 * g);
    SetScale32(g, 2 * static_cast<int>(packed >> 28) + 1, out);
    for (int k = 0; k < 4; ++k) {
      const uint32_t signs = ExpandSigns((packed >> (7 * k)) & 127);
      const Byte* indices = block.qs + 8 * g + 2 * k;
      int8_t* codes = out.codes + 32 * g + 8 * k;
      PutSigned(kGridIQ3_XXS[indices[0]], signs, codes);
      PutSigned(kGridIQ3_XXS[indices[1]], signs >> 4, codes + 4);
    }
  }
}
void PackIQ3_XXS(const UnpackedBlock& in, BlockIQ3_XXS& block) {
  block.d = ToHalf(4 * in.d);
  for (int v = 0; v < 64; ++v) block.qs[v] = static_cast<Byte>(FindEntry(kGridIQ3_XXS, in.codes + 4 * v));
  for (int g = 0; g < 8; ++g) {
    uint32_t packed = ScaleNibble(in, 2 * g) << 28;
    for (int k = 0; k < 4; ++k) packed |= (SignsOf(in.codes + 32 * g + 8 * k) & 127) << (7 * k);
    Store32(packed, block.scales_and_signs + 4 * g);
  }
}

void UnpackIQ3_S(const BlockIQ3_S& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits());
  out.dmin = 0;
  for (int g = 0; g < 8; ++g) SetScale32(g, 2 * ((block.scales[g / 2] >> (4 * (g % 2))) & 15) + 1, out);
  for (int v = 0; v < 64; ++v) {
    const uint32_t index = block.qs[v] | (((block.qh[v / 8] >> (v % 8)) & 1u) << 8);
    PutSigned(kGridIQ3_S[index], block.signs[v / 2] >> (4 * (v % 2)), out.codes + 4 * v);
  }
}
void PackIQ3_S(const UnpackedBlock& in, BlockIQ3_S& block) {
  block = {};
  block.d = ToHalf(in.d);
  for (int g = 0; g < 8; ++g)
    block.scales[g / 2] |= static_cast<Byte>(ScaleNibble(in, 2 * g) << (4 * (g % 2)));
  for (int v = 0; v < 64; ++v) {
    const uint32_t index = FindEntry(kGridIQ3_S, in.codes + 4 * v);
    block.qs[v] = static_cast<Byte>(index & 255);
    block.qh[v / 8] |= static_cast<Byte>((index >> 8) << (v % 8));
  }
  for (int v = 0; v < 32; ++v) block.signs[v] = static_cast<Byte>(SignsOf(in.codes + 8 * v));
}

void UnpackIQ1_S(const BlockIQ1_S& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits()) * 0.125f;
  out.dmin = 0;
  for (int g = 0; g < 8; ++g) {
    const uint32_t packed = Load16(block.qh + 2 * g);
    SetScale32(g, 2 * static_cast<int>((packed >> 12) & 7) + 1, out);
    for (int k = 0; k < 4; ++k) {
      const uint32_t index = block.qs[4 * g + k] | (((packed >> (3 * k)) & 7) << 8);
      PutShifted(kGridIQ1[index], (packed & 0x8000) != 0, out.codes + 32 * g + 8 * k);
    }
  }
}
void PackIQ1_S(const UnpackedBlock& in, BlockIQ1_S& block) {
  block.d = ToHalf(8 * in.d);
  for (int g = 0; g < 8; ++g) {
    uint32_t packed = ScaleNibble(in, 2 * g) << 12;
    for (int k = 0; k < 4; ++k) {
      const Shifted vector = FindShifted(in.codes + 32 * g + 8 * k);
      block.qs[4 * g + k] = static_cast<Byte>(vector.index & 255);
      packed |= (vector.index >> 8) << (3 * k) | (vector.minus ? 0x8000u : 0u);
    }
    Store16(packed, block.qh + 2 * g);
  }
}

void UnpackIQ1_M(const BlockIQ1_M& block, UnpackedBlock& out) {
  uint32_t d = 0;
  for (int w = 0; w < 4; ++w) {
    const uint32_t packed = Load16(block.scales + 2 * w);
    d |= (packed >> 12) << (4 * w);
    for (int k = 0; k < 4; ++k) {
      out.scales[4 * w + k] = 2 * static_cast<int>((packed >> (3 * k)) & 7) + 1;
      out.mins[4 * w + k] = 0;
    }
  }
  out.d = F16ToF32(static_cast<uint16_t>(d)) * 0.125f;
  out.dmin = 0;
  for (int v = 0; v < 32; ++v) {
    const uint32_t high = (block.qh[v / 2] >> (4 * (v % 2))) & 15u;
    PutShifted(kGridIQ1[block.qs[v] | ((high & 7) << 8)], (high & 8) != 0, out.codes + 8 * v);
  }
}
void PackIQ1_M(const UnpackedBlock& in, BlockIQ1_M& block) {
  block = {};
  const uint32_t d = F32ToF16(8 * in.d);
  for (int w = 0; w < 4; ++w) {
    uint32_t packed = ((d >> (4 * w)) & 15) << 12;
    for (int k = 0; k < 4; ++k) packed |= ScaleNibble(in, 4 * w + k) << (3 * k);
    Store16(packed, block.scales + 2 * w);
  }
  for (int v = 0; v < 32; ++v) {
    const Shifted vector = FindShifted(in.codes + 8 * v);
    block.qs[v] = static_cast<Byte>(vector.index & 255);
    block.qh[v / 2] |= static_cast<Byte>((vector.index >> 8 | (vector.minus ? 8u : 0u)) << (4 * (v % 2)));
  }
}

void UnpackIQ4_NL(const BlockIQ4_NL& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 32, out);
  PutTableValues(block.qs, out.codes);
}
void PackIQ4_NL(const UnpackedBlock& in, BlockIQ4_NL& block) {
  block.d = ToHalf(in.d);
  PutTableIndices(in.codes, block.qs);
}

void UnpackIQ4_XS(const BlockIQ4_XS& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits());
  out.dmin = 0;
  const uint32_t high = Load16(block.scales_h);
  for (int g = 0; g < 8; ++g) {
    const int low = (block.scales_l[g / 2] >> (4 * (g % 2))) & 15;
    SetScale32(g, (low | static_cast<int>(((high >> (2 * g)) & 3) << 4)) - 32, out);
    PutTableValues(block.qs + 16 * g, out.codes + 32 * g);
  }
}
void PackIQ4_XS(const UnpackedBlock& in, BlockIQ4_XS& block) {
  block = {};
  block.d = ToHalf(in.d);
  uint32_t high = 0;
  for (int g = 0; g < 8; ++g) {
    const auto scale = static_cast<uint32_t>(in.scales[2 * g] + 32);
    block.scales_l[g / 2] |= static_cast<Byte>((scale & 15) << (4 * (g % 2)));
    high |= (scale >> 4) << (2 * g);
    PutTableIndices(in.codes + 32 * g, block.qs + 16 * g);
  }
  Store16(high, block.scales_h);
}

}  // namespace sluice::formats
