#include "plan/pressure.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "memory/ledger.h"

namespace sluice::plan {
namespace {

class FakeClock final : public Clock {
 public:
  double NowSeconds() const override { return now; }
  double now = 1000;
};

class PressureTest : public testing::Test {
 protected:
  // What is wanted after another 0.2 seconds.
  uint64_t Wanted(uint64_t available) {
    clock_.now += 0.2;
    available_ = available;
    return watch_.WantedBytes();
  }

  FakeClock clock_;
  uint64_t available_ = 0;
  int looks_ = 0;
  PressureWatch watch_{clock_, {100, 150}, [this] {
                         ++looks_;
                         return available_;
                       }};
};

TEST_F(PressureTest, WantsMemoryBelowTheLowMarkAndThenEnough) {
  EXPECT_EQ(Wanted(1000), 0u);
  EXPECT_EQ(Wanted(100), 0u);
  EXPECT_EQ(Wanted(99), 51u);
  // It was given, and a little is taken again.
  EXPECT_EQ(Wanted(150), 0u);
  EXPECT_EQ(Wanted(101), 0u);
  EXPECT_EQ(Wanted(0), 150u);
  // Nothing came of it.
  EXPECT_EQ(Wanted(0), 150u);
  EXPECT_EQ(Wanted(UINT64_MAX), 0u);
}

TEST_F(PressureTest, LooksTenTimesASecondAtMost) {
  available_ = 0;
  EXPECT_EQ(watch_.WantedBytes(), 150u);
  for (int i = 0; i < 9; ++i) {
    clock_.now += 0.01;
    EXPECT_EQ(watch_.WantedBytes(), 0u);
  }
  EXPECT_EQ(looks_, 1);
  clock_.now += 0.011;
  EXPECT_EQ(watch_.WantedBytes(), 150u);
  EXPECT_EQ(looks_, 2);
}

TEST(PressureMarksTest, AreAQuarterOfWhatTheBudgetLeaves) {
  const PressureMarks marks = MarksFor(kGiB, kGiB - 400 * kMiB);
  EXPECT_EQ(marks.low_bytes, 100 * kMiB);
  EXPECT_EQ(marks.enough_bytes, 150 * kMiB);
  EXPECT_EQ(MarksFor(64 * kGiB, kGiB).low_bytes, 256 * kMiB);
  EXPECT_EQ(MarksFor(kGiB, 4 * kGiB).low_bytes, 16 * kMiB);
  EXPECT_EQ(MarksFor(kGiB, memory::Ledger::kUnlimited).low_bytes, 16 * kMiB);
  EXPECT_EQ(MarksFor(UINT64_MAX, kGiB).low_bytes, 256 * kMiB);
}

}  // namespace
}  // namespace sluice::plan
