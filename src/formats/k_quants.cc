// K-quants: super-blocks of 256 elements whose group scales (and minimums) are themselves small integers.
#include "formats/unpack_families.h"

namespace sluice::formats {
namespace {

// The two bits of element i, stored as "2-bit planes" (blocks.h).
int TwoBits(const Byte* planes, int i) {
  const int half = i / 128, plane = i % 128 / 32, l = i % 32;
  return (planes[32 * half + l] >> (2 * plane)) & 3;
}

// The four bits of element i in Q4_K and Q5_K.
int FourBits(const Byte* qs, int i) {
  const int pair = i / 64, l = i % 32;
  return (qs[32 * pair + l] >> (i % 64 < 32 ? 0 : 4)) & 15;
}

// The extra bit of element i in Q3_K and Q5_K.
int OneBit(const Byte* bits, int i) { return (bits[i % 32] >> (i / 32)) & 1; }

// Scale and minimum of 6 bits for each of the eight groups of 32 of Q4_K and Q5_K.
void UnpackScalesAndMins(const Byte* packed, UnpackedBlock& out) {
  for (int g = 0; g < 8; ++g) {
    int scale, min;
    if (g < 4) {
      scale = packed[g] & 63;
      min = packed[g + 4] & 63;
    } else {
      scale = (packed[g + 4] & 15) | ((packed[g - 4] >> 6) << 4);
      min = (packed[g + 4] >> 4) | ((packed[g] >> 6) << 4);
    }
    out.scales[2 * g] = out.scales[2 * g + 1] = scale;
    out.mins[2 * g] = out.mins[2 * g + 1] = min;
  }
}

}  // namespace

void UnpackQ2_K(const BlockQ2_K& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits());
  out.dmin = F16ToF32(block.dmin.bits());
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = block.scales[g] & 15;
    out.mins[g] = block.scales[g] >> 4;
  }
  for (int i = 0; i < 256; ++i) out.codes[i] = static_cast<int8_t>(TwoBits(block.qs, i));
}

void UnpackQ3_K(const BlockQ3_K& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits());
  out.dmin = 0;
  for (int g = 0; g < 16; ++g) {
    const int low = (block.scales[g % 8] >> (4 * (g / 8))) & 15;
    const int high = (block.scales[8 + g % 4] >> (2 * (g / 4))) & 3;
    out.scales[g] = (low | (high << 4)) - 32;
    out.mins[g] = 0;
  }
  for (int i = 0; i < 256; ++i) {
    out.codes[i] = static_cast<int8_t>((TwoBits(block.qs, i) | (OneBit(block.hmask, i) << 2)) - 4);
  }
}

void UnpackQ4_K(const BlockQ4_K& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits());
  out.dmin = F16ToF32(block.dmin.bits());
  UnpackScalesAndMins(block.scales, out);
  for (int i = 0; i < 256; ++i) out.codes[i] = static_cast<int8_t>(FourBits(block.qs, i));
}

void UnpackQ5_K(const BlockQ5_K& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits());
  out.dmin = F16ToF32(block.dmin.bits());
  UnpackScalesAndMins(block.scales, out);
  for (int i = 0; i < 256; ++i) {
    out.codes[i] = static_cast<int8_t>(FourBits(block.qs, i) | (OneBit(block.qh, i) << 4));
  }
}

void UnpackQ6_K(const BlockQ6_K& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits());
  out.dmin = 0;
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = block.scales[g];
    out.mins[g] = 0;
  }
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, l = i % 128;
    const int low = (block.ql[64 * half + l % 64] >> (l < 64 ? 0 : 4)) & 15;
    out.codes[i] = static_cast<int8_t>((low | (TwoBits(block.qh, i) << 4)) - 32);
  }
}

}  // namespace sluice::formats
