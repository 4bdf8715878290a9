// What plain code multiplies at best, as the compiler makes it of the scalar products' loops.
#include <array>
#include <cmath>

#include "kernels/scalar.h"

namespace sluice::kernels::scalar {

int64_t Int8Peak(int64_t rounds) {
  constexpr size_t kElements = 256;
  std::array<int8_t, kElements> w{}, q;
  q.fill(3);
  int32_t sum = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    // Changes, so that each round must be computed.
    w[static_cast<size_t>(round) % kElements] = static_cast<int8_t>(round);
    for (size_t i = 0; i < kElements; ++i) sum = (sum + w[i] * q[i]) & 0xffffff;
  }
  volatile int32_t sink = sum;
  static_cast<void>(sink);
  return rounds * static_cast<int64_t>(kElements);
}

int64_t F32Peak(int64_t rounds) {
  std::array<float, 16> lanes{};
  for (int64_t round = 0; round < rounds; ++round) {
    for (float& lane : lanes) lane = std::fma(lane, 0.5f, 1.0f);
  }
  volatile float sink = lanes[0];
  for (const float lane : lanes) sink = lane;
  static_cast<void>(sink);
  return rounds * static_cast<int64_t>(lanes.size());
}

}  // namespace sluice::kernels::scalar
