#include "formats/codebooks.h"

#include <cstddef>

#include "formats/codebook_tables.h"

namespace sluice::formats {
namespace {

// Turns packed codes into packed bytes: element j of entry e is values[bits j·kBits … of codes[e]].
template <typename Entry, int kBits, size_t kEntries, size_t kValues>
consteval std::array<Entry, kEntries> Expand(const uint16_t (&codes)[kEntries],
                                             const std::array<int8_t, kValues>& values) {
  std::array<Entry, kEntries> grid{};
  for (size_t e = 0; e < kEntries; ++e) {
    for (size_t j = 0; j < sizeof(Entry); ++j) {
      const int8_t value = values[(codes[e] >> (kBits * j)) & ((1u << kBits) - 1)];
      grid[e] |= static_cast<Entry>(static_cast<uint8_t>(value)) << (8 * j);
    }
  }
  return grid;
}

constexpr std::array<int8_t, 3> kValuesIQ2 = {8, 25, 43};
constexpr std::array<int8_t, 3> kValuesIQ1 = {-1, 0, 1};
constexpr std::array<int8_t, 8> kValuesIQ3_XXS = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array<int8_t, 8> kValuesIQ3_S = {1, 3, 5, 7, 9, 11, 13, 15};

}  // namespace

constexpr std::array<uint64_t, 256> kGridIQ2_XXS = Expand<uint64_t, 2>(kCodesIQ2_XXS, kValuesIQ2);
constexpr std::array<uint64_t, 512> kGridIQ2_XS = Expand<uint64_t, 2>(kCodesIQ2_XS, kValuesIQ2);
constexpr std::array<uint64_t, 1024> kGridIQ2_S = Expand<uint64_t, 2>(kCodesIQ2_S, kValuesIQ2);
constexpr std::array<uint64_t, 2048> kGridIQ1 = Expand<uint64_t, 2>(kCodesIQ1, kValuesIQ1);
constexpr std::array<uint32_t, 256> kGridIQ3_XXS = Expand<uint32_t, 3>(kCodesIQ3_XXS, kValuesIQ3_XXS);
constexpr std::array<uint32_t, 512> kGridIQ3_S = Expand<uint32_t, 3>(kCodesIQ3_S, kValuesIQ3_S);

}  // namespace sluice::formats
