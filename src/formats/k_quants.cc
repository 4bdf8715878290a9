// K-quants: super-blocks of 256 elements whose group scales (and minimums) are themselves small integers.
#include "formats/families.h"

namespace sluice::formats {
namespace {

// The two bits of element i, stored as "2-bit planes" (blocks.h).
int TwoBits(const Byte* planes, int i) {
  const int half = i / 128, plane = i % 128 / 32, l = i % 32;
  return (planes[32 * half + l] >> (2 * plane)) & 3;
}

// The inverses: each adds its bits to bytes that were 0.
void AddTwoBits(int value, int i, Byte* planes) {
  const int half = i / 128, plane = i % 128 / 32, l = i % 32;
  planes[32 * half + l] |= static_cast<Byte>((value & 3) << (2 * plane));
}
void AddFourBits(int value, int i, Byte* qs) {
  qs[32 * (i / 64) + i % 32] |= static_cast<Byte>((value & 15) << (i % 64 < 32 ? 0 : 4));
}
void AddOneBit(int value, int i, Byte* bits) { bits[i % 32] |= static_cast<Byte>((value & 1) << (i / 32)); }

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

void PackScalesAndMins(const UnpackedBlock& in, Byte* packed) {
  for (int g = 0; g < 4; ++g) {
    const int scale = in.scales[2 * g], min = in.mins[2 * g];
    const int scale4 = in.scales[2 * g + 8], min4 = in.mins[2 * g + 8];
    packed[g] = static_cast<Byte>(scale | (scale4 >> 4) << 6);
    packed[g + 4] = static_cast<Byte>(min | (min4 >> 4) << 6);
    packed[g + 8] = static_cast<Byte>((scale4 & 15) | (min4 & 15) << 4);
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
void PackQ2_K(const UnpackedBlock& in, BlockQ2_K& block) {
  block = {};
  block.d = ToHalf(in.d);
  block.dmin = ToHalf(in.dmin);
  for (int g = 0; g < 16; ++g) block.scales[g] = static_cast<Byte>(in.scales[g] | in.mins[g] << 4);
  for (int i = 0; i < 256; ++i) AddTwoBits(in.codes[i], i, block.qs);
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
void PackQ3_K(const UnpackedBlock& in, BlockQ3_K& block) {
  block = {};
  block.d = ToHalf(in.d);
  for (int g = 0; g < 16; ++g) {
    const int scale = in.scales[g] + 32;
    block.scales[g % 8] |= static_cast<Byte>((scale & 15) << (4 * (g / 8)));
    block.scales[8 + g % 4] |= static_cast<Byte>((scale >> 4) << (2 * (g / 4)));
  }
  for (int i = 0; i < 256; ++i) {
    const int code = in.codes[i] + 4;
    AddTwoBits(code, i, block.qs);
    AddOneBit(code >> 2, i, block.hmask);
  }
}

void UnpackQ4_K(const BlockQ4_K& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits());
  out.dmin = F16ToF32(block.dmin.bits());
  UnpackScalesAndMins(block.scales, out);
  for (int i = 0; i < 256; ++i) out.codes[i] = static_cast<int8_t>(FourBits(block.qs, i));
}
void PackQ4_K(const UnpackedBlock& in, BlockQ4_K& block) {
  block = {};
  block.d = ToHalf(in.d);
  block.dmin = ToHalf(in.dmin);
  PackScalesAndMins(in, block.scales);
  for (int i = 0; i < 256; ++i) AddFourBits(in.codes[i], i, block.qs);
}

void UnpackQ5_K(const BlockQ5_K& block, UnpackedBlock& out) {
  out.d = F16ToF32(block.d.bits());
  out.dmin = F16ToF32(block.dmin.bits());
  UnpackScalesAndMins(block.scales, out);
  for (int i = 0; i < 256; ++i) {
    out.codes[i] = static_cast<int8_t>(FourBits(block.qs, i) | (OneBit(block.qh, i) << 4));
  }
}
void PackQ5_K(const UnpackedBlock& in, BlockQ5_K& block) {
  block = {};
  block.d = ToHalf(in.d);
  block.dmin = ToHalf(in.dmin);
  PackScalesAndMins(in, block.scales);
  for (int i = 0; i < 256; ++i) {
    AddFourBits(in.codes[i], i, block.qs);
    AddOneBit(in.codes[i] >> 4, i, block.qh);
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
void PackQ6_K(const UnpackedBlock& in, BlockQ6_K& block) {
  block = {};
  block.d = ToHalf(in.d);
  for (int g = 0; g < 16; ++g) block.scales[g] = static_cast<int8_t>(in.scales[g]);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, l = i % 128, code = in.codes[i] + 32;
    block.ql[64 * half + l % 64] |= static_cast<Byte>((code & 15) << (l < 64 ? 0 : 4));
    AddTwoBits(code >> 4, i, block.qh);
  }
}

}  // namespace sluice::formats
