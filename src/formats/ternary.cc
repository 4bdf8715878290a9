// Ternary formats: −1, 0, 1 times one scale for 256 elements.
#include "formats/families.h"

namespace sluice::formats {
namespace {

// Digit n of a byte that holds five base-3 digits as a binary fraction; every byte value gives 0, 1 or 2.
int8_t TernaryDigit(Byte byte, int n) {
  static constexpr Byte kPowers[5] = {1, 3, 9, 27, 81};
  const auto fraction = static_cast<Byte>(byte * kPowers[n]);
  return static_cast<int8_t>((fraction * 3) >> 8);
}

// The byte that TernaryDigit reads these digits from, the first one first.
Byte TernaryByte(const int* digits) {
  int number = 0;
  for (int n = 0; n < 5; ++n) number = 3 * number + digits[n];
  return static_cast<Byte>((256 * number + 242) / 243);  // rounded up
}

}  // namespace

void UnpackTQ1_0(const BlockTQ1_0& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 256, out);
  int8_t* codes = out.codes;
  const auto put = [&codes](const Byte* bytes, int count, int digits) {
    for (int n = 0; n < digits; ++n) {
      for (int l = 0; l < count; ++l) *codes++ = static_cast<int8_t>(TernaryDigit(bytes[l], n) - 1);
    }
  };
  put(block.qs, 32, 5);
  put(block.qs + 32, 16, 5);
  put(block.qh, 4, 4);
}
void PackTQ1_0(const UnpackedBlock& in, BlockTQ1_0& block) {
  block.d = ToHalf(in.d);
  const int8_t* codes = in.codes;
  const auto put = [&codes](Byte* bytes, int count, int digits) {
    for (int l = 0; l < count; ++l) {
      int values[5] = {};
      for (int n = 0; n < digits; ++n) values[n] = codes[n * count + l] + 1;
      bytes[l] = TernaryByte(values);
    }
    codes += count * digits;
  };
  put(block.qs, 32, 5);
  put(block.qs + 32, 16, 5);
  put(block.qh, 4, 4);
}

void UnpackTQ2_0(const BlockTQ2_0& block, UnpackedBlock& out) {
  SetPlainScale(F16ToF32(block.d.bits()), 256, out);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, plane = i % 128 / 32, l = i % 32;
    out.codes[i] = static_cast<int8_t>(((block.qs[32 * half + l] >> (2 * plane)) & 3) - 1);
  }
}
void PackTQ2_0(const UnpackedBlock& in, BlockTQ2_0& block) {
  block = {};
  block.d = ToHalf(in.d);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, plane = i % 128 / 32, l = i % 32;
    block.qs[32 * half + l] |= static_cast<Byte>((in.codes[i] + 1) << (2 * plane));
  }
}

}  // namespace sluice::formats
