#include "eval/statistics.h"

#include <algorithm>
#include <cmath>

namespace sluice::eval {
namespace {

constexpr double kZ95 = 1.959963984540054;  // the normal distribution has 95 % of its mass within ± this

}  // namespace

void RunningMean::Add(double value) {
  ++count_;
  const double difference = value - mean_;
  mean_ += difference / static_cast<double>(count_);
  squares_ += difference * (value - mean_);
}

double RunningMean::standard_error() const {
  if (count_ < 2) return 0;
  const double n = static_cast<double>(count_);
  return std::sqrt(squares_ / (n - 1) / n);
}

Interval RunningMean::Confidence95() const {
  const double half = kZ95 * standard_error();
  return {mean_ - half, mean_ + half};
}

Interval Wilson95(int64_t right, int64_t total) {
  if (total == 0) return {0, 1};
  const double n = static_cast<double>(total);
  const double p = static_cast<double>(right) / n;
  const double z2 = kZ95 * kZ95;
  const double center = p + z2 / (2 * n);
  const double half = kZ95 * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  const double scale = 1 + z2 / n;
  return {std::max(0.0, (center - half) / scale), std::min(1.0, (center + half) / scale)};
}

}  // namespace sluice::eval
