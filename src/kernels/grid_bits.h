// Bits that the grid formats IQ1 to IQ3 keep in unusual places (formats/blocks.h), whole groups at once. In
// an anonymous namespace, so that each instruction set compiles its own copy.
#pragma once

#include <cstdint>

namespace sluice::kernels {
namespace {

// In each byte: bit 7 is set where the other seven have an odd number of ones.
inline uint32_t EvenSigns(uint32_t bytes) {
  uint32_t parity = bytes ^ (bytes >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return bytes | (parity & 0x01010101u) << 7;
}

// The signs of 32 elements from four times seven bits, the lowest first; what lies above is ignored.
inline uint32_t SpreadSigns(uint32_t packed) {
  return EvenSigns((packed & 0x7f) | (packed << 1 & 0x7f00) | (packed << 2 & 0x7f0000) |
                   (packed << 3 & 0x7f000000));
}

// The same from seven bits on top of each 16-bit word.
inline uint32_t SignsOfWords(uint64_t words) {
  const uint64_t sevens = words >> 9 & 0x007f007f007f007full;
  const uint64_t pairs = sevens | sevens >> 8;
  return EvenSigns(static_cast<uint32_t>((pairs & 0xffff) | (pairs >> 16 & 0xffff0000)));
}

// The f16 bits in the top nibbles of four 16-bit words, the lowest first (IQ1_M).
inline uint16_t HalfOfTopNibbles(uint64_t words) {
  return static_cast<uint16_t>((words >> 12 & 0xf) | (words >> 24 & 0xf0) | (words >> 36 & 0xf00) |
                               (words >> 48 & 0xf000));
}

}  // namespace
}  // namespace sluice::kernels
