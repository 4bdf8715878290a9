// 4-bit floats: E2M1 elements under a power-of-two scale (MXFP4, OCP Microscaling) or an 8-bit float scale
// (NVFP4).
#include <bit>

#include "formats/codebooks.h"
#include "formats/families.h"

namespace sluice::formats {
namespace {

// 512 · UE4M3 as an integer: exponent of 4 bits (bias 7), mantissa of 3. The sign bit is not used by the
// format; with it the exponent field simply continues as the reference does: only four exponent bits are
// read. 0x7f (NaN) counts as 0.
int32_t Ue4m3Times512(Byte byte) {
  if (byte == 0x7f) return 0;
  const int exponent = (byte >> 3) & 15;
  const int mantissa = byte & 7;
  return exponent == 0 ? mantissa : (8 + mantissa) << (exponent - 1);
}

void PutFp4(const Byte* qs, int half, int8_t* codes) {
  for (int j = 0; j < half; ++j) {
    codes[j] = kValuesFP4[qs[j] & 15];
    codes[j + half] = kValuesFP4[qs[j] >> 4];
  }
}

Byte Ue4m3Of(int32_t times512) {
  Byte byte = 0;
  while (byte < 0x7f && Ue4m3Times512(byte) != times512) ++byte;
  return byte < 0x7f ? byte : 0xff;  // 480, which the format itself doesn't have
}

void PackFp4(const int8_t* codes, int half, Byte* qs) {
  for (int j = 0; j < half; ++j)
    qs[j] = static_cast<Byte>(IndexOf(kValuesFP4, codes[j]) | IndexOf(kValuesFP4, codes[j + half]) << 4);
}

}  // namespace

void UnpackMXFP4(const BlockMXFP4& block, UnpackedBlock& out) {
  // 2^(e − 128): subnormal below e = 2.
  const uint32_t bits = block.e < 2 ? 0x00200000u << block.e : static_cast<uint32_t>(block.e - 1) << 23;
  SetPlainScale(std::bit_cast<float>(bits), 32, out);
  PutFp4(block.qs, 16, out.codes);
}
void PackMXFP4(const UnpackedBlock& in, BlockMXFP4& block) {
  const uint32_t bits = std::bit_cast<uint32_t>(in.d);
  block.e = static_cast<Byte>(bits >= 0x00800000u ? (bits >> 23) + 1 : bits >> 22);
  PackFp4(in.codes, 16, block.qs);
}

void UnpackNVFP4(const BlockNVFP4& block, UnpackedBlock& out) {
  out.d = 0x1p-10f;  // 1/512, and half because kValuesFP4 is doubled
  out.dmin = 0;
  for (int g = 0; g < 4; ++g) {
    out.scales[g] = Ue4m3Times512(block.d[g]);
    out.mins[g] = 0;
    PutFp4(block.qs + 8 * g, 8, out.codes + 16 * g);
  }
}
void PackNVFP4(const UnpackedBlock& in, BlockNVFP4& block) {
  for (int g = 0; g < 4; ++g) {
    block.d[g] = Ue4m3Of(in.scales[g]);
    PackFp4(in.codes + 16 * g, 8, block.qs + 8 * g);
  }
}

}  // namespace sluice::formats
