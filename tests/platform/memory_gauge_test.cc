#include "platform/memory_gauge.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/units.h"
#include "platform/memory_info.h"
#include "platform/temp_folder.h"
#include "sample/count_allocations.h"

namespace sluice::platform {
namespace {

// Writes into the same file, as the kernel does: it stays open.
void Rewrite(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(MemoryGaugeTest, FollowsTheSystem) {
  const TempFolder root;
  const std::string path = root.Write("proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 5000 kB\n");
  MemoryGauge gauge(root.path());
  EXPECT_EQ(gauge.AvailableBytes(), 5000 * kKiB);
  Rewrite(path, "MemTotal: 8000 kB\nMemAvailable: 77 kB\n");
  EXPECT_EQ(gauge.AvailableBytes(), 77 * kKiB);
}

TEST(MemoryGaugeTest, TakesTheTightestGroupAndLimitsThatCameLater) {
  const TempFolder root;
  root.Write("proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 5000 kB\n");
  root.Write("proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.Write("proc/self/cgroup", "0::/a/b\n");
  const std::string limit = root.Write("sys/fs/cgroup/a/b/memory.max", "max\n");
  root.Write("sys/fs/cgroup/a/b/memory.current", "600\n");
  const std::string stat = root.Write("sys/fs/cgroup/a/b/memory.stat", "active_file 0\ninactive_file 100\n");
  root.Write("sys/fs/cgroup/a/memory.max", "5000\n");
  root.Write("sys/fs/cgroup/a/memory.current", "1000\n");
  MemoryGauge gauge(root.path());
  EXPECT_EQ(gauge.AvailableBytes(), 4000u);
  Rewrite(limit, "1000\n");
  EXPECT_EQ(gauge.AvailableBytes(), 500u);
  Rewrite(stat, "active_file 50\ninactive_file 100\n");
  EXPECT_EQ(gauge.AvailableBytes(), 550u);
}

TEST(MemoryGaugeTest, WhereTheSystemSaysNothingNothingIsShort) {
  const TempFolder root;
  MemoryGauge gauge(root.path());
  EXPECT_EQ(gauge.AvailableBytes(), UINT64_MAX);
}

TEST(MemoryGaugeTest, OnThisMachineItAllocatesNothing) {
  MemoryGauge gauge;
  const size_t before = sample::Allocations();
  const uint64_t available = gauge.AvailableBytes();
  EXPECT_EQ(sample::Allocations(), before);
  EXPECT_GT(available, 0u);
  EXPECT_LE(available, ReadSystemMemory()->total_bytes);
}

}  // namespace
}  // namespace sluice::platform
