// Made-up values for tests of encoders.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace sluice::formats {

// About normal, mean 0 and deviation 1; made of whole numbers, so that they are the same everywhere.
inline std::vector<float> BellShaped(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    int sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<int>(random() >> 20);
    value = static_cast<float>(sum - 12 * 2048 + 6) * 0x1p-12f;
  }
  return values;
}

}  // namespace sluice::formats
