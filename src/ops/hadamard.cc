#include "ops/hadamard.h"

#include <cmath>

namespace sluice::ops {

namespace {

// One stage of the butterfly: pairs `stride` apart.
void Stage(float* x, int64_t length, int64_t stride) {
  for (int64_t first = 0; first < length; first += 2 * stride) {
    for (int64_t i = first; i < first + stride; ++i) {
      const float a = x[i];
      const float b = x[i + stride];
      x[i] = a + b;
      x[i + stride] = a - b;
    }
  }
}

}  // namespace

void Hadamard(float* x, int64_t n) {
  const int64_t length = n & -n;
  const float scale = 1.0f / std::sqrt(static_cast<float>(length));
  for (float* run = x; run < x + n; run += length) {
    for (int64_t stride = 1; stride < length; stride *= 2) Stage(run, length, stride);
    for (int64_t i = 0; i < length; ++i) run[i] = run[i] * scale;
  }
}

}  // namespace sluice::ops
