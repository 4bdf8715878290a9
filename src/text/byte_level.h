// The byte alphabet of GPT-2's tokenizer (openai/gpt-2, encoder.py): each byte is spelled as one visible
// character, so that token texts hold no spaces or control characters. Bytes that are printable in Latin-1
// stand for themselves; the other 68 are U+0100, U+0101 … in ascending order ("Ġ" is a space).
#pragma once

#include <array>
#include <cstdint>

namespace sluice::text {

inline constexpr bool SpellsItself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

inline constexpr std::array<uint16_t, 256> kByteSpelling = [] {
  std::array<uint16_t, 256> spelling{};
  uint16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    spelling[byte] = SpellsItself(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return spelling;
}();

// The byte that a character spells, or -1.
inline constexpr int ByteOfSpelling(uint32_t code_point) {
  constexpr std::array<int16_t, 0x144> kBytes = [] {
    std::array<int16_t, 0x144> bytes{};
    bytes.fill(-1);
    for (uint32_t byte = 0; byte < 256; ++byte) bytes[kByteSpelling[byte]] = static_cast<int16_t>(byte);
    return bytes;
  }();
  return code_point < kBytes.size() ? kBytes[code_point] : -1;
}

}  // namespace sluice::text
