// The code books of the IQ and 4-bit float formats: the vectors that an index in a block stands for.
//
// Source: the tables of ggml's public format definition (ggml-common.h of ggml 0.23), kept here as 2- or
// 3-bit codes in codebook_tables.h and expanded at compile time. All constant; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace sluice::formats {

// Grids of 8 elements: element j is byte j (little-endian). Values: IQ2: 8, 25, 43. IQ1: −1, 0, 1 (signed
// bytes).
extern const std::array<uint64_t, 256> kGridIQ2_XXS;
extern const std::array<uint64_t, 512> kGridIQ2_XS;
extern const std::array<uint64_t, 1024> kGridIQ2_S;
extern const std::array<uint64_t, 2048> kGridIQ1;

// Grids of 4 elements: element j is byte j. Values: IQ3_XXS: 4, 12, 20, 28, 36, 44, 52, 62. IQ3_S: 1, 3,
// … 15.
extern const std::array<uint32_t, 256> kGridIQ3_XXS;
extern const std::array<uint32_t, 512> kGridIQ3_S;

// IQ4_NL and IQ4_XS: the 16 values of a 4-bit code.
inline constexpr std::array<int8_t, 16> kValuesIQ4_NL = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                         1,    13,   25,  38,  53,  69,  89,  113};

// MXFP4 and NVFP4: twice the value of an E2M1 float (sign, 2 exponent bits, 1 mantissa bit).
inline constexpr std::array<int8_t, 16> kValuesFP4 = {0, 1,  2,  3,  4,  6,  8,  12,
                                                      0, -1, -2, -3, -4, -6, -8, -12};

// Eight signs from seven stored bits: the eighth makes the number of minuses even. Bit j set: element j is
// negative.
constexpr uint32_t ExpandSigns(uint32_t seven_bits) {
  return seven_bits | ((static_cast<uint32_t>(std::popcount(seven_bits)) & 1u) << 7);
}

// The index of an entry that is in the grid: grids are in ascending order of their packed codes, which is the
// order of their bytes read from the last element to the first.
template <typename Entry, size_t kEntries>
uint32_t GridIndex(const std::array<Entry, kEntries>& grid, Entry entry) {
  const auto key = [](Entry e) {
    return e ^ static_cast<Entry>(0x8080808080808080ull);
  };  // signed bytes in order
  const auto at =
      std::lower_bound(grid.begin(), grid.end(), entry, [key](Entry a, Entry b) { return key(a) < key(b); });
  return static_cast<uint32_t>(at - grid.begin());
}

// The first index of a value that is in the table.
template <size_t kValues>
uint32_t IndexOf(const std::array<int8_t, kValues>& values, int value) {
  return static_cast<uint32_t>(std::find(values.begin(), values.end(), value) - values.begin());
}

}  // namespace sluice::formats
