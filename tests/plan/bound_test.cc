#include "plan/bound.h"

#include <gtest/gtest.h>

namespace sluice::plan {
namespace {

TEST(BoundTest, SplitsTheWorkersTime) {
  // Ten seconds of two workers, of which they waited for fourteen; memory needs two of the ten.
  const Bound bound = FindBound({.seconds = 10,
                                 .workers = 2,
                                 .stall_seconds = 14.2,
                                 .memory_bytes = 40e9,
                                 .memory_bytes_per_second = 20e9});
  EXPECT_DOUBLE_EQ(*bound.storage, 0.71);
  EXPECT_DOUBLE_EQ(*bound.memory, 0.2);
  EXPECT_NEAR(*bound.compute, 0.09, 1e-12);
  EXPECT_EQ(bound.together, 0);
  EXPECT_EQ(bound.Line(), "bound by: storage 71 %, memory 20 %, compute 9 %");
}

TEST(BoundTest, PercentsComeToAHundred) {
  EXPECT_EQ((Bound{.storage = 0.335, .memory = 0.335, .compute = 0.33}).Line(),
            "bound by: storage 34 %, memory 34 %, compute 32 %");
  EXPECT_EQ((Bound{.storage = 0.996, .memory = 0.004, .compute = 0}).Line(),
            "bound by: storage 100 %, memory 0 %, compute 0 %");
}

// Roofs that were read at another moment can add up to a little more than there is.
TEST(BoundTest, NoShareIsMoreThanWhatIsLeft) {
  const Bound slow = FindBound({.seconds = 1,
                                .workers = 1,
                                .stall_seconds = 0.75,
                                .memory_bytes = 28e7,
                                .memory_bytes_per_second = 1e9});
  EXPECT_DOUBLE_EQ(*slow.storage, 0.75);
  EXPECT_DOUBLE_EQ(*slow.memory, 0.25);
  EXPECT_DOUBLE_EQ(*slow.compute, 0);
  EXPECT_DOUBLE_EQ(*FindBound({.seconds = 1, .workers = 1, .stall_seconds = 7.0}).storage, 1);
}

// A small model lies in the processor's caches.
TEST(BoundTest, WeightsFasterThanMemorySayNothingOfMemory) {
  const Bound cached = FindBound({.seconds = 1,
                                  .workers = 2,
                                  .stall_seconds = 0.0,
                                  .memory_bytes = 3e9,
                                  .memory_bytes_per_second = 1e9});
  EXPECT_FALSE(cached.memory || cached.compute);
  EXPECT_DOUBLE_EQ(cached.together, 1);
  EXPECT_EQ(cached.Line(),
            "bound by: storage 0 %, memory and compute 100 % (not told apart: weights came faster than "
            "memory was measured to "
            "read: they lie in caches, or it was slower then)");
}

TEST(BoundTest, WhatWasNotMeasuredIsNotToldApart) {
  const Bound no_roof = FindBound({.seconds = 1, .workers = 4, .stall_seconds = 3.0, .memory_bytes = 1e9});
  EXPECT_FALSE(no_roof.memory || no_roof.compute);
  EXPECT_DOUBLE_EQ(no_roof.together, 0.25);
  EXPECT_EQ(no_roof.Line(),
            "bound by: storage 75 %, memory and compute 25 % (not told apart: `sluice plan` has not measured "
            "this device's memory "
            "yet)");
  const Bound mapped =
      FindBound({.seconds = 1, .workers = 4, .memory_bytes = 1e9, .memory_bytes_per_second = 5e9});
  EXPECT_FALSE(mapped.storage || mapped.compute);
  EXPECT_EQ(mapped.Line(),
            "bound by: memory 20 %, storage and compute 80 % (not told apart: pages of mapped weights come "
            "when they are "
            "touched)");
  EXPECT_EQ(FindBound({.seconds = 1, .workers = 4}).Line(),
            "bound by: storage, memory and compute (not told apart: pages of mapped weights come when they "
            "are touched)");
  EXPECT_EQ(FindBound({.seconds = 0, .workers = 4, .stall_seconds = 0.0}).Line(),
            "bound by: unknown, nothing was computed");
}

}  // namespace
}  // namespace sluice::plan
