#include <gmock/gmock.h>

#include "sluice/output.h"

namespace sluice::app {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

// The time that a line is told, moved by hand. Standard error is no terminal here.
ProgressLine::TimePoint now;
ProgressLine::TimePoint Now() { return now; }

class ProgressLineTest : public testing::Test {
 protected:
  std::string Show(ProgressLine& line, double done, double total) {
    testing::internal::CaptureStderr();
    line.Show(done, total);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(ProgressLineTest, SaysPercentAndTimeLeftNowAndThen) {
  ProgressLine line("loading", 0, &Now);
  now += 9s;
  EXPECT_FALSE(line.due());
  EXPECT_THAT(Show(line, 10, 100), IsEmpty());
  now += 1s;
  EXPECT_TRUE(line.due());
  EXPECT_EQ(Show(line, 20, 100), "loading 20 %, 40 s left\n");
  now += 5s;
  EXPECT_THAT(Show(line, 40, 100), IsEmpty());
  now += 5s;
  EXPECT_EQ(Show(line, 80, 100), "loading 80 %, 5 s left\n");
}

TEST_F(ProgressLineTest, ShortWorkShowsNothing) {
  ProgressLine line("loading", 0, &Now);
  now += 400ms;
  EXPECT_FALSE(line.due());
  EXPECT_THAT(Show(line, 100, 100), IsEmpty());
}

TEST_F(ProgressLineTest, WhatWasDoneBeforeSaysNothingOfTheTimeLeft) {
  ProgressLine line("reading", 500, &Now);
  now += 10s;
  EXPECT_THAT(Show(line, 500, 2000), IsEmpty());
  EXPECT_EQ(Show(line, 1000, 2000), "reading 50 %, 20 s left\n");
}

}  // namespace
}  // namespace sluice::app
