#include "ops/xielu.h"

#include <algorithm>

#include "base/math.h"

namespace sluice::ops {

void Xielu(const XieluConstants& constants, float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    x[i] = v > 0 ? constants.alpha_p * v * v + constants.beta * v
                 : constants.alpha_n * (Exp(std::min(v, constants.eps)) - 1.0f - v) + constants.beta * v;
  }
}

}  // namespace sluice::ops
