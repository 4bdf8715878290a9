#include "parallel/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "platform/affinity.h"

namespace sluice::parallel {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolTest, testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolTest, RunCallsEveryWorkerOnceOnItsOwnThread) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.size(), GetParam());
  std::vector<int> calls(static_cast<size_t>(pool.size()));
  std::vector<std::thread::id> threads(calls.size());
  for (int repeat = 1; repeat <= 100; ++repeat) {
    pool.Run([&](int worker) {
      ++calls[static_cast<size_t>(worker)];
      threads[static_cast<size_t>(worker)] = std::this_thread::get_id();
    });
    EXPECT_EQ(calls, std::vector<int>(calls.size(), repeat));
  }
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), threads.size());
}

TEST_P(ThreadPoolTest, KnowsHowManyHaveNothingToDo) {
  ThreadPool pool(GetParam());
  std::atomic<int> inside{0}, looked{0};
  pool.Run([&](int worker) {
    for (++inside; inside < pool.size();) std::this_thread::yield();
    if (worker == 0) {
      EXPECT_EQ(pool.idle_workers(), 0);
    }
    for (++looked; looked < pool.size();) std::this_thread::yield();
  });
  // One item is for one worker, the caller.
  pool.ParallelFor(1, 1, [&](int64_t, int64_t, int) { EXPECT_EQ(pool.idle_workers(), pool.size() - 1); });
  EXPECT_EQ(pool.idle_workers(), pool.size() - 1);
}

TEST_P(ThreadPoolTest, ParallelForCoversEachItemOnceInAlignedRanges) {
  ThreadPool pool(GetParam());
  for (const int64_t items : {0, 1, 7, 8, 9, 64, 1000}) {
    for (const int64_t grain : {1, 3, 8, 5000}) {
      std::vector<int> seen(static_cast<size_t>(items));
      std::atomic<int> odd_ranges = 0;
      pool.ParallelFor(items, grain, [&](int64_t begin, int64_t end, int worker) {
        const bool whole = end - begin == grain || end == items;
        if (begin % grain != 0 || begin >= end || !whole || worker < 0 || worker >= pool.size()) ++odd_ranges;
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << items << " by " << grain;
      EXPECT_EQ(odd_ranges, 0) << items << " by " << grain;
    }
  }
}

// What the workers of one call write is seen by all workers of the next: the chain of dependent steps of a
// token.
TEST_P(ThreadPoolTest, EachCallSeesTheOneBefore) {
  ThreadPool pool(GetParam());
  constexpr int64_t kItems = 64;
  std::vector<int64_t> a(kItems, 1), b(kItems, 0);
  for (int step = 0; step < 2000; ++step) {
    pool.ParallelFor(kItems, 4, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        b[static_cast<size_t>(i)] = a[static_cast<size_t>((i + 13) % kItems)] + 1;
      }
    });
    a.swap(b);
  }
  EXPECT_EQ(a, std::vector<int64_t>(kItems, 2001));
}

TEST(ThreadPoolTest, WorkersStayOnTheirCores) {
  const std::vector<int> mine = platform::CurrentThreadCores();
  ThreadPool pool({.threads = 3, .cores = {mine.back()}});
  std::array<std::vector<int>, 3> cores;
  pool.Run([&](int worker) { cores[static_cast<size_t>(worker)] = platform::CurrentThreadCores(); });
  EXPECT_EQ(cores[0], mine);
  EXPECT_EQ(cores[1], std::vector<int>{mine.back()});
  EXPECT_EQ(cores[2], std::vector<int>{mine.back()});
  {
    const auto stay = pool.KeepCallerOnCores();
    EXPECT_EQ(platform::CurrentThreadCores(), std::vector<int>{mine.back()});
  }
  EXPECT_EQ(platform::CurrentThreadCores(), mine);
}

// A worker that is stuck in its range holds up that range only: the others do all the rest meanwhile.
TEST(ThreadPoolTest, ASlowWorkerKeepsOneRangeOnly) {
  ThreadPool pool(2);
  constexpr int64_t kItems = 50;
  std::atomic<int64_t> done = 0;
  std::array<int64_t, 2> ranges = {};
  pool.ParallelFor(kItems, 1, [&](int64_t begin, int64_t, int worker) {
    ++ranges[static_cast<size_t>(worker)];
    if (begin == 0) {
      while (done.load() < kItems - 1) std::this_thread::yield();
    }
    ++done;
  });
  EXPECT_EQ(std::min(ranges[0], ranges[1]), 1);
  EXPECT_EQ(ranges[0] + ranges[1], kItems);
}

// Many calls that are over before a sleeping helper can come: entering, shutting the gate and falling asleep
// race.
TEST(ThreadPoolTest, ShortCallsWhileHelpersSleepAndWake) {
  ThreadPool pool({.threads = 3, .cores = {}, .spin = std::chrono::microseconds(0)});
  for (int repeat = 0; repeat < 3000; ++repeat) {
    std::array<int64_t, 3> sums = {};
    pool.ParallelFor(4, 1,
                     [&](int64_t begin, int64_t, int worker) { sums[static_cast<size_t>(worker)] += begin; });
    ASSERT_EQ(sums[0] + sums[1] + sums[2], 6);
  }
}

TEST(ThreadPoolTest, WakesFromSleep) {
  for (const int spin_us : {0, 50}) {
    ThreadPool pool({.threads = 3, .cores = {}, .spin = std::chrono::microseconds(spin_us)});
    std::atomic<int> calls = 0;
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      pool.Run([&](int) { ++calls; });
    }
    EXPECT_EQ(calls, 60);
  }
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// Field case P56: an idle pool takes no CPU time. The bound is a sixth of what one spinning helper would use.
TEST(ThreadPoolTest, IdleHelpersSleep) {
  ThreadPool pool(2);
  pool.Run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = CpuSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(CpuSeconds() - before, 0.05);
}

// Field case P54: nobody spins for as long as a worker is off its core with its work.
TEST(ThreadPoolTest, WaitingForAWorkerThatIsAwayTakesNoCpuTime) {
  ThreadPool pool(3);
  const double before = CpuSeconds();
  pool.Run([](int worker) {
    if (worker == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  EXPECT_LT(CpuSeconds() - before, 0.05);
}

// 1 + 2^-30 is above 1 only when rounding upward.
bool RoundsUpward() {
  volatile float one = 1.0f;
  volatile float tiny = 0x1p-30f;
  return one + tiny > 1.0f;
}

TEST(ThreadPoolTest, WorkersRoundToNearestAndTheCallerKeepsItsOwn) {
  ThreadPool pool(2);
  std::fesetround(FE_UPWARD);
  std::array<bool, 2> upward = {true, true};
  const bool before = RoundsUpward();
  pool.Run([&](int worker) { upward[static_cast<size_t>(worker)] = RoundsUpward(); });
  const bool after = RoundsUpward();
  std::fesetround(FE_TONEAREST);
  EXPECT_TRUE(before);
  EXPECT_EQ(upward, (std::array<bool, 2>{false, false}));
  EXPECT_TRUE(after);
}

TEST(ThreadPoolTest, TakesConstFunctionObjectsAndOddThreadCounts) {
  ThreadPool pool(-3);
  EXPECT_EQ(pool.size(), 1);
  int calls = 0;
  const auto count = [&calls](int) { ++calls; };
  pool.Run(count);
  EXPECT_EQ(calls, 1);
}

TEST(ThreadPoolTest, ReusableFromAnotherThread) {
  ThreadPool pool(2);
  std::atomic<int> calls = 0;
  pool.Run([&](int) { ++calls; });
  std::thread([&] { pool.Run([&](int) { ++calls; }); }).join();
  EXPECT_EQ(calls, 4);
}

TEST(ThreadPoolDeathTest, NestedCallsAreABug) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        ThreadPool pool(1);
        pool.Run([&](int) { pool.Run([](int) {}); });
      },
      "check failed");
}

}  // namespace
}  // namespace sluice::parallel
