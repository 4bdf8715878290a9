#include "plan/budget.h"

#include <gmock/gmock.h>

#include "base/units.h"
#include "memory/ledger.h"
#include "platform/temp_folder.h"

namespace sluice::plan {
namespace {

using testing::HasSubstr;

// A system of `total` and `available` GiB, in no control group.
void WriteMemory(const TempFolder& root, uint64_t total, uint64_t available) {
  root.Write("proc/meminfo",
             fmt::format("MemTotal: {} kB\nMemAvailable: {} kB\n", total << 20, available << 20));
}

TEST(BudgetTest, IsWhatIsAvailableLessAReserve) {
  const TempFolder root;
  WriteMemory(root, 8, 5);
  const Budget small = DefaultBudget(root.path());
  EXPECT_EQ(small.bytes, 4 * kGiB);  // at least 1 GiB is left
  EXPECT_THAT(small.origin, HasSubstr("4.00 GiB: 5.00 GiB available less a reserve of 1.00 GiB"));
  WriteMemory(root, 40, 30);
  EXPECT_EQ(DefaultBudget(root.path()).bytes, 26 * kGiB);  // a tenth of the total
}

TEST(BudgetTest, OfATinyMachineIsHalfOfWhatIsLeft) {
  const TempFolder root;
  WriteMemory(root, 2, 1);
  EXPECT_EQ(DefaultBudget(root.path()).bytes, kGiB / 2);
}

TEST(BudgetTest, UnknownMemoryIsNoLimit) {
  const TempFolder root;
  EXPECT_EQ(DefaultBudget(root.path()).bytes, memory::Ledger::kUnlimited);
}

TEST(BudgetTest, TheTightestOfAllCgroupV2AncestorsDecides) {
  const TempFolder root;
  WriteMemory(root, 64, 60);
  root.Write("proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.Write("proc/self/cgroup", "0::/a/b\n");
  root.Write("sys/fs/cgroup/a/b/memory.max", "max\n");
  root.Write("sys/fs/cgroup/a/memory.max", std::to_string(8 * kGiB));
  root.Write("sys/fs/cgroup/a/memory.current", std::to_string(5 * kGiB));
  root.Write("sys/fs/cgroup/a/memory.stat", fmt::format("inactive_file {}\nactive_file {}\n", kGiB, kGiB));
  // 8 − (5 − 2 that can be dropped) = 5 are available; the reserve is that of a machine of 8.
  const Budget budget = DefaultBudget(root.path());
  EXPECT_EQ(budget.bytes, 4 * kGiB);
  EXPECT_THAT(budget.origin, HasSubstr("control group"));
}

TEST(BudgetTest, CgroupV1LimitsCountToo) {
  const TempFolder root;
  WriteMemory(root, 64, 60);
  root.Write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  root.Write("proc/self/cgroup", "4:memory:/job\n");
  root.Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(3 * kGiB));
  root.Write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(kGiB));
  root.Write("sys/fs/cgroup/memory/job/memory.stat", fmt::format("total_inactive_file {}\n", kGiB / 2));
  root.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(DefaultBudget(root.path()).bytes, 3 * kGiB / 2);
}

TEST(UnaccountedTest, WhatAccountsCanHaveAndTheRestAreTheBudget) {
  for (uint64_t budget = 7 * kMiB; budget < 64 * kGiB; budget += budget / 7 + 12345) {
    const uint64_t accounted = budget - UnaccountedWithin(budget);
    EXPECT_LE(accounted + UnaccountedBytes(accounted), budget);
    EXPECT_GE(accounted + UnaccountedBytes(accounted) + 4096, budget);
    EXPECT_LE(UnaccountedWithin(budget), 64 * kMiB);
  }
  EXPECT_EQ(UnaccountedWithin(memory::Ledger::kUnlimited), 64 * kMiB);
  EXPECT_EQ(UnaccountedWithin(1000), 1000u);
}

}  // namespace
}  // namespace sluice::plan
