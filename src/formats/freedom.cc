#include "formats/freedom.h"

#include <algorithm>
#include <array>
#include <bit>

#include "formats/codebooks.h"

namespace sluice::formats {
namespace {

template <int kLow, int kHigh>
constexpr auto kRange = [] {
  std::array<int8_t, kHigh - kLow + 1> levels{};
  for (size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<int8_t>(kLow + static_cast<int>(i));
  return levels;
}();

constexpr std::array<int8_t, 2> kSigns = {-1, 1};

constexpr auto kFp4 = [] {
  std::array<int8_t, 15> levels{};
  for (size_t i = 0; i < 8; ++i) {
    levels[7 + i] = kValuesFP4[i];
    levels[7 - i] = static_cast<int8_t>(-kValuesFP4[i]);
  }
  return levels;
}();

// The grid's magnitudes, element by element.
template <size_t kEntries, typename Entry>
auto Columns(const std::array<Entry, kEntries>& grid) {
  std::array<float, sizeof(Entry) * kEntries> values;
  for (size_t j = 0; j < sizeof(Entry); ++j) {
    for (size_t e = 0; e < kEntries; ++e)
      values[j * kEntries + e] = static_cast<float>((grid[e] >> (8 * j)) & 0xff);
  }
  return values;
}

template <const auto& kGrid>
GridChoice Grid(bool even_signs) {
  static const auto kValues = Columns(kGrid);
  constexpr size_t kEntries = std::tuple_size_v<std::remove_cvref_t<decltype(kGrid)>>;
  return {static_cast<int>(kValues.size() / kEntries), static_cast<int>(kEntries), kValues, even_signs};
}

Freedom Plain(std::span<const int8_t> levels, int length) {
  return {.length = length, .group = length, .levels = levels, .grid = {}};
}

Freedom WithMinimum(std::span<const int8_t> levels, int length) {
  return {.length = length, .group = length, .levels = levels, .grid = {}, .has_minimum = true};
}

Freedom Scaled(std::span<const int8_t> levels, int group, int low, int high) {
  return {.length = 256, .group = group, .levels = levels, .grid = {}, .scale_low = low, .scale_high = high};
}

Freedom ScaledWithMinimum(std::span<const int8_t> levels, int group, int high) {
  return {.length = 256,
          .group = group,
          .levels = levels,
          .grid = {},
          .scale_low = 0,
          .scale_high = high,
          .min_high = high,
          .has_minimum = true};
}

// Scales 2s + 1 of four bits.
Freedom OnGrid(const GridChoice& grid, int group, float half_factor) {
  return {.length = 256,
          .group = group,
          .levels = {},
          .grid = grid,
          .scale_low = 1,
          .scale_high = 31,
          .scale_step = 2,
          .half_factor = half_factor};
}

const std::array<Freedom, kDTypeLimit>& Table() {
  static const std::array<Freedom, kDTypeLimit> kTable = [] {
    std::array<Freedom, kDTypeLimit> table;
    const auto set = [&table](DType dtype, const Freedom& freedom) {
      table[static_cast<size_t>(dtype)] = freedom;
    };
    set(DType::kQ4_0, Plain(kRange<-8, 7>, 32));
    set(DType::kQ5_0, Plain(kRange<-16, 15>, 32));
    set(DType::kQ8_0, Plain(kRange<-127, 127>, 32));
    set(DType::kIQ4_NL, Plain(kValuesIQ4_NL, 32));
    set(DType::kQ4_1, WithMinimum(kRange<0, 15>, 32));
    set(DType::kQ5_1, WithMinimum(kRange<0, 31>, 32));
    set(DType::kQ1_0, Plain(kSigns, 128));
    set(DType::kQ2_0, Plain(kRange<-1, 2>, 64));
    set(DType::kTQ1_0, Plain(kRange<-1, 1>, 256));
    set(DType::kTQ2_0, Plain(kRange<-1, 1>, 256));
    set(DType::kQ2_K, ScaledWithMinimum(kRange<0, 3>, 16, 15));
    set(DType::kQ4_K, ScaledWithMinimum(kRange<0, 15>, 32, 63));
    set(DType::kQ5_K, ScaledWithMinimum(kRange<0, 31>, 32, 63));
    set(DType::kQ3_K, Scaled(kRange<-4, 3>, 16, -32, 31));
    set(DType::kQ6_K, Scaled(kRange<-32, 31>, 16, -128, 127));
    set(DType::kIQ4_XS, Scaled(kValuesIQ4_NL, 32, -32, 31));
    set(DType::kIQ2_XXS, OnGrid(Grid<kGridIQ2_XXS>(true), 32, 8));
    set(DType::kIQ2_XS, OnGrid(Grid<kGridIQ2_XS>(true), 16, 8));
    set(DType::kIQ2_S, OnGrid(Grid<kGridIQ2_S>(false), 16, 8));
    set(DType::kIQ3_XXS, OnGrid(Grid<kGridIQ3_XXS>(true), 32, 4));
    set(DType::kIQ3_S, OnGrid(Grid<kGridIQ3_S>(false), 32, 1));
    // Their scales are 8-bit floats: those that the encoder found stay.
    Freedom fp4 = Plain(kFp4, 32);
    fp4.half_factor = 0;
    set(DType::kMXFP4, fp4);
    fp4.length = 64;
    fp4.group = 16;
    set(DType::kNVFP4, fp4);
    return table;
  }();
  return kTable;
}

}  // namespace

const Freedom* FreedomOf(DType dtype) {
  const Freedom& freedom = Table()[static_cast<size_t>(dtype)];
  return freedom.length > 0 ? &freedom : nullptr;
}

}  // namespace sluice::formats
