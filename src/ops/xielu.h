// xIELU, the activation of the Apertus models (arXiv 2411.13010): a learned parabola right of zero, a learned
// exponential left of it.
#pragma once

#include <cstdint>

namespace sluice::ops {

struct XieluConstants {
  float alpha_n, alpha_p, beta, eps;
};

// x > 0: α_p·x² + β·x; else α_n·(e^min(x, ε) − 1 − x) + β·x. In place, element by element.
void Xielu(const XieluConstants& constants, float* x, int64_t n);

}  // namespace sluice::ops
