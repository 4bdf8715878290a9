#include "plan/quality.h"

#include <algorithm>
#include <iterator>

namespace sluice::plan {

namespace {

constexpr double kF16 = 6.233;  // perplexity
constexpr double Above(double perplexity) { return 100 * (perplexity / kF16 - 1); }

constexpr QualityLoss kLosses[] = {
    {"F16", 0, 0},
    {"BF16", 0, 0},
    {"F32", 0, 0},
    {"Q8_0", Above(6.234), 0.00136},
    {"Q6_K", Above(6.253), 0.0055},
    {"Q5_K_M", Above(6.289), 0.0108},
    {"Q4_K_M", Above(6.383), 0.0282},
    {"Q4_K_S", Above(6.410), 0.0320},
    {"IQ4_XS", Above(6.460), 0.0363},
    {"Q4_0", Above(6.700), 0.0719},
    {"Q3_K_L", Above(6.671), 0.073},
    {"Q3_K_M", Above(6.734), 0.084},
    {"Q3_K_S", Above(7.603), 0.200},
    {"IQ3_M", Above(6.898), 0.103},
    {"IQ3_S", Above(6.966), 0.111},
    {"IQ3_XS", Above(7.163), 0.139},
    {"IQ3_XXS", Above(7.458), 0.184},
    {"Q2_K", Above(8.648), 0.332},
    {"Q2_K_S", Above(9.324), 0.403},
    {"IQ2_M", Above(8.601), 0.326},
    {"IQ2_S", Above(9.651), 0.439},
    {"IQ2_XS", Above(10.761), 0.546},
    {"IQ2_XXS", Above(14.092), 0.812},
    {"IQ1_M", Above(25.5), 1.39},
    {"IQ1_S", Above(58), 2.2},
};

}  // namespace

const QualityLoss* FindQualityLoss(std::string_view mix) {
  const auto found = std::ranges::find(kLosses, mix, &QualityLoss::mix);
  return found != std::end(kLosses) ? &*found : nullptr;
}

}  // namespace sluice::plan
