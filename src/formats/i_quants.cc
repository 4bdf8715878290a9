// Code-book formats: IQ1 to IQ3 name whole vectors of 8 or 4 elements by an index into a grid; IQ4 maps each
// 4-bit code through a table of 16 values.
#include "formats/codebooks.h"
#include "formats/unpack_families.h"

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

void UnpackIQ2_XS(const BlockIQ2_XS& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits()) * 0.125f;
  out.dmin = 0;
  SetNibbleScales16(block.scales, out);
  for (int v = 0; v < 32; ++v) {
    const uint32_t packed = Load16(block.qs + 2 * v);
    PutSigned(kGridIQ2_XS[packed & 511], ExpandSigns(packed >> 9), out.codes + 8 * v);
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

void UnpackIQ3_S(const BlockIQ3_S& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits());
  out.dmin = 0;
  for (int g = 0; g < 8; ++g) SetScale32(g, 2 * ((block.scales[g / 2] >> (4 * (g % 2))) & 15) + 1, out);
  for (int v = 0; v < 64; ++v) {
    const uint32_t index = block.qs[v] | (((block.qh[v / 8] >> (v % 8)) & 1u) << 8);
    PutSigned(kGridIQ3_S[index], block.signs[v / 2] >> (4 * (v % 2)), out.codes + 4 * v);
  }
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

void UnpackIQ4_NL(const BlockIQ4_NL& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 32, out);
  PutTableValues(block.qs, out.codes);
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

}  // namespace sluice::formats
