#include "formats/fit.h"

namespace sluice::formats {
namespace {

// The power of two at or below a positive value, kept where it and its inverse are normal.
float PowerOfTwoBelow(float value) {
  const uint32_t exponent = std::clamp(std::bit_cast<uint32_t>(value) >> 23, 2u, 252u);
  return std::bit_cast<float>(exponent << 23);
}

constexpr float kLeastWeight = 0x1p-20f;

}  // namespace

FitBlock::FitBlock(const float* values, const float* importance, int block_length) : length(block_length) {
  const float largest = std::fabs(Largest(values, length));
  unit = largest > 0 ? PowerOfTwoBelow(largest) : 1;
  inverse = 1 / unit;
  for (int i = 0; i < length; ++i) x[i] = values[i] * inverse;

  const float heaviest = importance == nullptr ? 0 : *std::max_element(importance, importance + length);
  if (heaviest > 0) {
    for (int i = 0; i < length; ++i) w[i] = std::max(importance[i] / heaviest, kLeastWeight);
  } else {
    std::fill(w, w + length, 1.0f);
  }
}

}  // namespace sluice::formats
