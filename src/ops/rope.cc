#include "ops/rope.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace sluice::ops {

namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

// The pair whose wavelength makes `rotations` turns over the original context (YaRN, eq. 17 onwards).
double CorrectionPair(const RopeSpec& spec, double rotations) {
  return spec.dimensions * LogDouble(static_cast<double>(spec.original_context) / (rotations * kTwoPi)) /
         (2 * LogDouble(spec.base));
}

double YarnMagnitude(double factor, double multiplier) {
  return factor <= 1 ? 1.0 : 0.1 * multiplier * LogDouble(factor) + 1.0;
}

}  // namespace

Rope::Rope(const RopeSpec& spec) {
  const int pairs = spec.dimensions / 2;
  frequencies_.resize(static_cast<size_t>(pairs));
  double low = 0, high = 0;
  if (spec.scaling == RopeScaling::kYarn) {
    low = std::max(0.0, std::floor(CorrectionPair(spec, spec.beta_fast)));
    high = std::min(spec.dimensions - 1.0, std::ceil(CorrectionPair(spec, spec.beta_slow)));
  }
  for (int i = 0; i < pairs; ++i) {
    double frequency = PowDouble(spec.base, -2.0 * i / spec.dimensions);
    if (!spec.divisors.empty()) frequency /= static_cast<double>(spec.divisors[static_cast<size_t>(i)]);
    double interpolated = frequency / spec.factor;
    if (spec.scaling == RopeScaling::kYarn) {
      // Fast pairs keep their frequency, slow ones are interpolated, those between are mixed.
      const double slow = std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
      interpolated = interpolated * slow + frequency * (1 - slow);
    }
    frequencies_[static_cast<size_t>(i)] = interpolated;
  }
  magnitude_ = spec.attention_factor;
  if (spec.scaling == RopeScaling::kYarn) {
    magnitude_ *= YarnMagnitude(spec.factor, 1.0);
    if (spec.yarn_log_multiplier != 0) magnitude_ /= YarnMagnitude(spec.factor, spec.yarn_log_multiplier);
  }
}

void Rope::Angles(int64_t position, float* cos, float* sin) const { Fill(position, magnitude_, cos, sin); }

void Rope::Turn(int64_t distance, float* cos, float* sin) const { Fill(distance, 1.0, cos, sin); }

void Rope::Fill(int64_t position, double magnitude, float* cos, float* sin) const {
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const double angle = static_cast<double>(position) * frequencies_[i];
    cos[i] = static_cast<float>(CosDouble(angle) * magnitude);
    sin[i] = static_cast<float>(SinDouble(angle) * magnitude);
  }
}

}  // namespace sluice::ops
