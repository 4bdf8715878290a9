#include "eval/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::eval {
namespace {

TEST(StatisticsTest, MeanAndStandardError) {
  RunningMean mean;
  EXPECT_EQ(mean.mean(), 0);
  EXPECT_EQ(mean.standard_error(), 0);
  for (const double x : {2, 4, 4, 4, 5, 5, 7, 9}) mean.Add(x);
  EXPECT_EQ(mean.count(), 8);
  EXPECT_DOUBLE_EQ(mean.mean(), 5);
  EXPECT_DOUBLE_EQ(mean.standard_error(), std::sqrt(32.0 / 7 / 8));
  EXPECT_NEAR(mean.Confidence95().high - 5, 1.96 * mean.standard_error(), 1e-4);
}

TEST(StatisticsTest, ALargeOffsetLosesNothing) {
  RunningMean mean;
  for (int i = 0; i < 1000; ++i) mean.Add(1e9 + (i % 2));
  EXPECT_NEAR(mean.standard_error(), std::sqrt(0.25 * 1000 / 999 / 1000), 1e-9);
}

// Source of the expected values: the closed form, worked out with 30 digits.
TEST(StatisticsTest, WilsonIntervals) {
  EXPECT_NEAR(Wilson95(5, 10).low, 0.2365930905, 1e-9);
  EXPECT_NEAR(Wilson95(5, 10).high, 0.7634069095, 1e-9);
  EXPECT_NEAR(Wilson95(0, 10).low, 0, 1e-12);
  EXPECT_NEAR(Wilson95(0, 10).high, 0.2775327998, 1e-9);
  EXPECT_NEAR(Wilson95(10, 10).low, 0.7224672002, 1e-9);
  EXPECT_NEAR(Wilson95(10, 10).high, 1, 1e-12);
  EXPECT_EQ(Wilson95(0, 0).low, 0);
  EXPECT_EQ(Wilson95(0, 0).high, 1);
}

}  // namespace
}  // namespace sluice::eval
