#include <gtest/gtest.h>

#include "kernels/support.h"

namespace sluice::kernels {
namespace {

// How fast they are is no test's business; that the work grows with the rounds is.
TEST(Peaks, CountWhatTheyMultiply) {
  for (const Kernels* kernels : AllKernels()) {
    if (!Runs(*kernels)) continue;
    for (const auto peak : {kernels->int8_peak, kernels->f32_peak}) {
      ASSERT_NE(peak, nullptr) << kernels->name;
      EXPECT_EQ(peak(0), 0) << kernels->name;
      const int64_t one = peak(1);
      EXPECT_GT(one, 0) << kernels->name;
      EXPECT_EQ(peak(1000), 1000 * one) << kernels->name;
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
