// How sure a measured number is: means with their standard errors, shares with their intervals. Values; one
// thread at a time.
#pragma once

#include <cstdint>

namespace sluice::eval {

struct Interval {
  double low, high;
};

// Mean and variance of a stream of finite numbers (Welford 1962: no sum of squares that loses digits).
class RunningMean {
 public:
  void Add(double value);

  int64_t count() const { return count_; }
  double mean() const { return mean_; }  // 0 when nothing was added
  double standard_error() const;         // of the mean; 0 below two values
  Interval Confidence95() const;         // mean ± 1.96 standard errors

 private:
  int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // Σ (value − mean)²
};

// The 95 % interval of a share `right` of `total` (Wilson 1927): sound for few trials and near 0 and 1, too.
// [0, 1] when total is 0.
Interval Wilson95(int64_t right, int64_t total);

// How many of a number of trials went right.
struct Score {
  int64_t right = 0;
  int64_t total = 0;

  double share() const { return total == 0 ? 0 : static_cast<double>(right) / static_cast<double>(total); }
  Interval Confidence95() const { return Wilson95(right, total); }
};

}  // namespace sluice::eval
