// Formats with one scale for a block: Q4_0 … Q8_0 (32 elements), Q2_0 (64), Q1_0 (128).
#include "formats/families.h"

namespace sluice::formats {
namespace {

// codes[i] = (4 bits from qs | bit i of high_bits << 4) + offset
void UnpackNibbles32(const Byte* qs, uint32_t high_bits, int offset, int8_t* codes) {
  for (int j = 0; j < 16; ++j) {
    const int low = (qs[j] & 15) | (((high_bits >> j) & 1) << 4);
    const int high = (qs[j] >> 4) | (((high_bits >> (j + 16)) & 1) << 4);
    codes[j] = static_cast<int8_t>(low + offset);
    codes[j + 16] = static_cast<int8_t>(high + offset);
  }
}

// The inverse of UnpackNibbles32; returns the high bits.
uint32_t PackNibbles32(const int8_t* codes, int offset, Byte* qs) {
  uint32_t high_bits = 0;
  for (int j = 0; j < 16; ++j) {
    const int low = codes[j] - offset, high = codes[j + 16] - offset;
    qs[j] = static_cast<Byte>((low & 15) | ((high & 15) << 4));
    high_bits |= static_cast<uint32_t>(low >> 4) << j | static_cast<uint32_t>(high >> 4) << (j + 16);
  }
  return high_bits;
}

// x = d · q + m, written as d · q − (−m) · 1.
void SetScaleAndMinimum(float d, float m, UnpackedBlock& out) {
  out.d = d;
  out.dmin = -m;
  for (int g = 0; g < 2; ++g) out.scales[g] = out.mins[g] = 1;
}

}  // namespace

void UnpackQ4_0(const BlockQ4_0& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 32, out);
  UnpackNibbles32(block.qs, 0, -8, out.codes);
}
void PackQ4_0(const UnpackedBlock& in, BlockQ4_0& block) {
  block.d = ToHalf(in.d);
  PackNibbles32(in.codes, -8, block.qs);
}

void UnpackQ4_1(const BlockQ4_1& block, UnpackedBlock& out) {
  SetScaleAndMinimum(F16ToF32(block.d.bits()), F16ToF32(block.m.bits()), out);
  UnpackNibbles32(block.qs, 0, 0, out.codes);
}
void PackQ4_1(const UnpackedBlock& in, BlockQ4_1& block) {
  block.d = ToHalf(in.d);
  block.m = ToHalf(-in.dmin);
  PackNibbles32(in.codes, 0, block.qs);
}

void UnpackQ5_0(const BlockQ5_0& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 32, out);
  UnpackNibbles32(block.qs, Load32(block.qh), -16, out.codes);
}
void PackQ5_0(const UnpackedBlock& in, BlockQ5_0& block) {
  block.d = ToHalf(in.d);
  Store32(PackNibbles32(in.codes, -16, block.qs), block.qh);
}

void UnpackQ5_1(const BlockQ5_1& block, UnpackedBlock& out) {
  SetScaleAndMinimum(F16ToF32(block.d.bits()), F16ToF32(block.m.bits()), out);
  UnpackNibbles32(block.qs, Load32(block.qh), 0, out.codes);
}
void PackQ5_1(const UnpackedBlock& in, BlockQ5_1& block) {
  block.d = ToHalf(in.d);
  block.m = ToHalf(-in.dmin);
  Store32(PackNibbles32(in.codes, 0, block.qs), block.qh);
}

void UnpackQ8_0(const BlockQ8_0& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 32, out);
  std::memcpy(out.codes, block.qs, 32);
}
void PackQ8_0(const UnpackedBlock& in, BlockQ8_0& block) {
  block.d = ToHalf(in.d);
  std::memcpy(block.qs, in.codes, 32);
}

void UnpackQ1_0(const BlockQ1_0& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 128, out);
  for (int i = 0; i < 128; ++i) out.codes[i] = (block.qs[i / 8] >> (i % 8)) & 1 ? 1 : -1;
}
void PackQ1_0(const UnpackedBlock& in, BlockQ1_0& block) {
  block = {};
  block.d = ToHalf(in.d);
  for (int i = 0; i < 128; ++i) block.qs[i / 8] |= static_cast<Byte>((in.codes[i] > 0 ? 1 : 0) << (i % 8));
}

void UnpackQ2_0(const BlockQ2_0& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 64, out);
  for (int i = 0; i < 64; ++i)
    out.codes[i] = static_cast<int8_t>(((block.qs[i / 4] >> (2 * (i % 4))) & 3) - 1);
}
void PackQ2_0(const UnpackedBlock& in, BlockQ2_0& block) {
  block = {};
  block.d = ToHalf(in.d);
  for (int i = 0; i < 64; ++i) block.qs[i / 4] |= static_cast<Byte>((in.codes[i] + 1) << (2 * (i % 4)));
}

}  // namespace sluice::formats
