// Formats with one scale for a block: Q4_0 … Q8_0 (32 elements), Q2_0 (64), Q1_0 (128).
#include "formats/unpack_families.h"

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

void UnpackQ4_1(const BlockQ4_1& block, UnpackedBlock& out) {
  SetScaleAndMinimum(F16ToF32(block.d.bits()), F16ToF32(block.m.bits()), out);
  UnpackNibbles32(block.qs, 0, 0, out.codes);
}

void UnpackQ5_0(const BlockQ5_0& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 32, out);
  UnpackNibbles32(block.qs, Load32(block.qh), -16, out.codes);
}

void UnpackQ5_1(const BlockQ5_1& block, UnpackedBlock& out) {
  SetScaleAndMinimum(F16ToF32(block.d.bits()), F16ToF32(block.m.bits()), out);
  UnpackNibbles32(block.qs, Load32(block.qh), 0, out.codes);
}

void UnpackQ8_0(const BlockQ8_0& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 32, out);
  std::memcpy(out.codes, block.qs, 32);
}

void UnpackQ1_0(const BlockQ1_0& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 128, out);
  for (int i = 0; i < 128; ++i) out.codes[i] = (block.qs[i / 8] >> (i % 8)) & 1 ? 1 : -1;
}

void UnpackQ2_0(const BlockQ2_0& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 64, out);
  for (int i = 0; i < 64; ++i)
    out.codes[i] = static_cast<int8_t>(((block.qs[i / 4] >> (2 * (i % 4))) & 3) - 1);
}

}  // namespace sluice::formats
