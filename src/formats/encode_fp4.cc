// Encoders for 4-bit floats: the scales are few, so those around the one that just holds the largest element
// are all tried.
#include "formats/codebooks.h"
#include "formats/encoders.h"
#include "formats/families.h"

namespace sluice::formats {
namespace {

constexpr std::array<int8_t, 15> kLevelsFP4 = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12};
using CodesFP4 = TableCodes<kLevelsFP4>;

// 2^exponent, exponent −128 … 127, subnormal below −126.
float PowerOfTwo(int exponent) {
  const uint32_t bits =
      exponent < -126 ? 0x00400000u >> (-127 - exponent) : static_cast<uint32_t>(exponent + 127) << 23;
  return std::bit_cast<float>(bits);
}

// The UE4M3 numbers in ascending order: number k is byte k (0 … 126), times 512.
int32_t Ue4m3Times512(int byte) {
  const int exponent = byte >> 3, mantissa = byte & 7;
  return exponent == 0 ? mantissa : (8 + mantissa) << (exponent - 1);
}

}  // namespace

void FitMXFP4(const FitBlock& block, UnpackedBlock& out) {
  const float largest = std::fabs(Largest(block.x, block.length));
  // The exponent under which the largest element, in [1, 2) units, is between 8 and 16 times the scale.
  const int unit_exponent = static_cast<int>(std::bit_cast<uint32_t>(block.unit) >> 23) - 127;
  int best = -128;
  float best_error = INFINITY;
  for (int exponent = unit_exponent - 4; largest > 0 && exponent <= unit_exponent; ++exponent) {
    const int stored = std::clamp(exponent, -128, 124);  // 12 · 2^124 is a float
    const float d = PowerOfTwo(stored) * block.inverse;
    const float error = Measure<CodesFP4>(block.x, block.w, block.length, d).error;
    if (error < best_error) {
      best = stored;
      best_error = error;
    }
  }
  SetPlainScale(PowerOfTwo(best), block.length, out);
  PutCodes<CodesFP4>(block.x, block.length, out.d * block.inverse, out.codes);
}

void FitNVFP4(const FitBlock& block, UnpackedBlock& out) {
  out.d = 0x1p-10f;
  out.dmin = 0;
  const float d = 0x1p-10f * block.inverse;
  for (int g = 0; g < 4; ++g) {
    const float* const x = block.x + kGroupLength * g;
    const float* const w = block.w + kGroupLength * g;
    const float largest = std::fabs(Largest(x, kGroupLength));
    float best_error = INFINITY;
    for (int byte = 0; byte <= 126; ++byte) {
      const float scale = d * static_cast<float>(Ue4m3Times512(byte));
      const bool far = scale * 20 < largest || scale * 4 > largest;
      if (far && byte != 0 && byte != 126) continue;
      const float error = Measure<CodesFP4>(x, w, kGroupLength, scale).error;
      if (!(error < best_error)) continue;
      best_error = error;
      out.scales[g] = Ue4m3Times512(byte);
    }
    out.mins[g] = 0;
    PutCodes<CodesFP4>(x, kGroupLength, d * static_cast<float>(out.scales[g]), out.codes + kGroupLength * g);
  }
}

}  // namespace sluice::formats
