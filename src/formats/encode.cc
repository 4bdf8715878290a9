#include "formats/encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/half.h"
#include "formats/encoders.h"
#include "formats/pack.h"

namespace sluice::formats {
namespace {

constexpr float kLargestHalf = 65504;

struct Encoder {
  EncodeFn fit = nullptr;
  float largest = 0;  // magnitude, see LargestValue
};

// The largest value is what the larger of a block's values may be whatever its sign, with the largest scales.
constexpr auto kEncoders = [] {
  std::array<Encoder, kDTypeLimit> table{};
  const auto set = [&table](DType dtype, EncodeFn fit, float largest_times_d) {
    table[static_cast<size_t>(dtype)] = {fit, largest_times_d * kLargestHalf};
  };
  set(DType::kQ4_0, FitQ4_0, 7);
  set(DType::kQ4_1, FitQ4_1, 1);
  set(DType::kQ5_0, FitQ5_0, 15);
  set(DType::kQ5_1, FitQ5_1, 1);
  set(DType::kQ8_0, FitQ8_0, 127);
  set(DType::kQ1_0, FitQ1_0, 1);
  set(DType::kQ2_0, FitQ2_0, 1);
  set(DType::kQ2_K, FitQ2_K, 15);
  set(DType::kQ3_K, FitQ3_K, 31 * 3);
  set(DType::kQ4_K, FitQ4_K, 63);
  set(DType::kQ5_K, FitQ5_K, 63);
  set(DType::kQ6_K, FitQ6_K, 127 * 31);
  set(DType::kIQ1_S, FitIQ1_S, 15 * 7 / 8.0f);
  set(DType::kIQ1_M, FitIQ1_M, 15 * 7 / 8.0f);
  set(DType::kIQ2_XXS, FitIQ2_XXS, 31 * 43 / 8.0f);
  set(DType::kIQ2_XS, FitIQ2_XS, 31 * 43 / 8.0f);
  set(DType::kIQ2_S, FitIQ2_S, 31 * 43 / 8.0f);
  set(DType::kIQ3_XXS, FitIQ3_XXS, 31 * 62 / 4.0f);
  set(DType::kIQ3_S, FitIQ3_S, 31 * 15);
  set(DType::kIQ4_NL, FitIQ4_NL, 113);
  set(DType::kIQ4_XS, FitIQ4_XS, 31 * 113);
  set(DType::kTQ1_0, FitTernary, 1);
  set(DType::kTQ2_0, FitTernary, 1);
  set(DType::kNVFP4, FitNVFP4, 448 * 6 / kLargestHalf);
  table[static_cast<size_t>(DType::kMXFP4)] = {FitMXFP4, 0x1.8p127f};
  return table;
}();

template <typename Stored, typename Convert>
void EncodeElements(std::span<const float> values, std::byte* out, Convert convert) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Stored stored = convert(values[i]);
    std::memcpy(out + i * sizeof(Stored), &stored, sizeof(Stored));
  }
}

}  // namespace

bool CanEncode(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || IsQuantised(dtype);
}

float LargestValue(DType dtype) {
  if (dtype == DType::kF16) return kLargestHalf;
  if (!IsQuantised(dtype)) return std::numeric_limits<float>::infinity();
  return kEncoders[static_cast<size_t>(dtype)].largest;
}

size_t FindUnfitValue(DType dtype, std::span<const float> values) {
  const float largest = std::min(LargestValue(dtype), std::numeric_limits<float>::max());
  const auto at =
      std::find_if_not(values.begin(), values.end(), [=](float v) { return std::fabs(v) <= largest; });
  return static_cast<size_t>(at - values.begin());
}

void EncodeRow(DType dtype, std::span<const float> values, std::span<const float> importance,
               std::byte* blocks) {
  const DTypeTraits& traits = Traits(dtype);
  SLUICE_CHECK(CanEncode(dtype) && values.size() % traits.block_length == 0);
  SLUICE_CHECK(importance.empty() || importance.size() == values.size());
  if (dtype == DType::kF32) return EncodeElements<float>(values, blocks, [](float v) { return v; });
  if (dtype == DType::kF16) return EncodeElements<uint16_t>(values, blocks, F32ToF16);
  if (dtype == DType::kBF16) return EncodeElements<uint16_t>(values, blocks, F32ToBf16);

  const EncodeFn fit = kEncoders[static_cast<size_t>(dtype)].fit;
  const PackFn pack = PackerFor(dtype);
  UnpackedBlock unpacked;
  for (size_t begin = 0; begin < values.size(); begin += traits.block_length, blocks += traits.block_bytes) {
    const FitBlock block(values.data() + begin, importance.empty() ? nullptr : importance.data() + begin,
                         static_cast<int>(traits.block_length));
    fit(block, unpacked);
    pack(unpacked, blocks);
  }
}

}  // namespace sluice::formats
