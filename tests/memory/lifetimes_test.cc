#include "memory/lifetimes.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::memory {
namespace {

TEST(LifetimesTest, BuffersThatNeverMeetShareMemory) {
  Lifetimes plan;
  const size_t early = plan.Add(1000, 0, 1);
  const size_t late = plan.Add(640, 2, 3);
  EXPECT_EQ(plan.Place(), 1024);
  EXPECT_EQ(plan.offset(early), 0);
  EXPECT_EQ(plan.offset(late), 0);
}

TEST(LifetimesTest, BuffersThatMeetAreSideBySide) {
  Lifetimes plan;
  plan.Add(64, 0, 2);
  plan.Add(128, 2, 4);
  EXPECT_EQ(plan.Place(), 192);
}

TEST(LifetimesTest, AGapIsFilled) {
  Lifetimes plan;
  plan.Add(640, 0, 0);
  plan.Add(320, 0, 1);
  const size_t filling = plan.Add(128, 1, 1);  // beside the second, where the first was
  EXPECT_EQ(plan.Place(), 960);
  EXPECT_LE(plan.offset(filling) + 128, 640);
}

TEST(LifetimesTest, NothingOverlapsAndTheBlockIsAtLeastThePeak) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Lifetimes plan;
    struct Life {
      uint64_t bytes;
      int first, last;
    };
    std::vector<Life> lives;
    for (int i = 0; i < 20; ++i) {
      const int first = static_cast<int>(random() % 8);
      lives.push_back({random() % 5000, first, first + static_cast<int>(random() % 4)});
      plan.Add(lives.back().bytes, lives.back().first, lives.back().last);
    }
    const uint64_t total = plan.Place();
    uint64_t peak = 0;
    for (int step = 0; step < 12; ++step) {
      uint64_t now = 0;
      for (size_t i = 0; i < lives.size(); ++i)
        now += lives[i].first <= step && step <= lives[i].last ? plan.bytes(i) : 0;
      peak = std::max(peak, now);
    }
    EXPECT_GE(total, peak);
    for (size_t i = 0; i < lives.size(); ++i) {
      EXPECT_EQ(plan.offset(i) % 64, 0);
      EXPECT_LE(plan.offset(i) + plan.bytes(i), total);
      for (size_t j = 0; j < i; ++j) {
        const bool meet = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
        const bool apart = plan.offset(i) + plan.bytes(i) <= plan.offset(j) ||
                           plan.offset(j) + plan.bytes(j) <= plan.offset(i) || plan.bytes(i) == 0 ||
                           plan.bytes(j) == 0;
        EXPECT_TRUE(!meet || apart) << round << ": " << i << " and " << j;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::memory
