#include "platform/memory_info.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "platform/cgroup_memory.h"
#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

TEST(MemoryInfoTest, System) {
  const TempFolder root;
  root.Write("proc/meminfo", "MemTotal:        8000000 kB\nMemFree: 1 kB\nMemAvailable:    5000000 kB\n");
  const auto memory = ReadSystemMemory(root.path());
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total_bytes, 8000000 * kKiB);
  EXPECT_EQ(memory->available_bytes, 5000000 * kKiB);
}

TEST(MemoryInfoTest, SystemFiguresThatAreMissingOrOdd) {
  const TempFolder root;
  EXPECT_EQ(ReadSystemMemory(root.path()).error().code, ErrorCode::kUnsupported);
  for (const char* table : {"MemTotal: 8 kB\n", "MemTotal: 8 kB\nMemAvailable: 5 MB\n",
                            "MemTotal: 8 kB\nMemAvailable: 18446744073709551615 kB\n"}) {
    root.Write("proc/meminfo", table);
    const auto memory = ReadSystemMemory(root.path());
    ASSERT_FALSE(memory) << table;
    EXPECT_NE(memory.error().message.find("MemAvailable"), std::string::npos);
  }
}

TEST(MemoryInfoTest, Process) {
  const TempFolder root;
  root.Write("proc/self/status", "VmSize:\t 900 kB\nVmHWM:\t  500 kB\nVmRSS:\t  400 kB\nVmSwap:\t 3 kB\n");
  root.Write("proc/self/smaps_rollup",
             "00400000-7ffd ---p 00000000 00:00 0 [rollup]\nRss: 400 kB\nPss:  350 kB\n");
  const ProcessMemory memory = ReadProcessMemory(root.path());
  EXPECT_EQ(memory.rss_bytes, 400 * kKiB);
  EXPECT_EQ(memory.peak_rss_bytes, 500 * kKiB);
  EXPECT_EQ(memory.virtual_bytes, 900 * kKiB);
  EXPECT_EQ(memory.swap_bytes, 3 * kKiB);
  EXPECT_EQ(ReadProportionalBytes(root.path()), 350 * kKiB);
}

TEST(MemoryInfoTest, ProcessFiguresThatAreMissingAreUnknown) {
  const TempFolder root;
  EXPECT_EQ(ReadProcessMemory(root.path()).rss_bytes, std::nullopt);
  root.Write("proc/self/status", "VmSize:\t 900 kB\nVmHWM:\t  5 MB\nVmRSS:\t  -4 kB\n");
  const ProcessMemory odd = ReadProcessMemory(root.path());
  EXPECT_EQ(odd.virtual_bytes, 900 * kKiB);
  EXPECT_EQ(odd.peak_rss_bytes, std::nullopt);
  EXPECT_EQ(odd.rss_bytes, std::nullopt);
  EXPECT_EQ(odd.swap_bytes, std::nullopt);
  EXPECT_EQ(ReadProportionalBytes(root.path()), std::nullopt);
}

TEST(MemoryInfoTest, CgroupV2TakesLimitsOfAllAncestors) {
  const TempFolder root;
  root.Write("proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.Write("proc/self/cgroup", "0::/a/b/c\n");
  root.Write("sys/fs/cgroup/a/b/c/memory.max", "max\n");
  root.Write("sys/fs/cgroup/a/b/memory.max", "1000\n");
  root.Write("sys/fs/cgroup/a/b/memory.high", "max\n");
  root.Write("sys/fs/cgroup/a/b/memory.current", "700\n");
  root.Write("sys/fs/cgroup/a/b/memory.stat",
             "anon 400\nfile 300\nactive_file 50\ninactive_file 150\nshmem 100\n");
  root.Write("sys/fs/cgroup/a/memory.max", "5000\n");
  root.Write("sys/fs/cgroup/a/memory.high", "4000\n");
  root.Write("sys/fs/cgroup/a/memory.current", "4500\n");
  const auto groups = ReadCgroupMemory(root.path());
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].folder, root / "sys/fs/cgroup/a/b");
  EXPECT_EQ(groups[0].limit_bytes, 1000u);
  EXPECT_EQ(groups[0].usage_bytes, 700u);
  EXPECT_EQ(groups[0].reclaimable_file_bytes, 200u);
  EXPECT_EQ(groups[0].available_bytes(), 500u);
  EXPECT_EQ(groups[1].limit_bytes, 4000u);
  EXPECT_EQ(groups[1].available_bytes(), 0u);  // above memory.high already
}

TEST(MemoryInfoTest, CgroupV1CountsDescendants) {
  const TempFolder root;
  root.Write("proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  root.Write("proc/self/cgroup", "4:memory:/job\n");
  root.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "8589934592\n");
  root.Write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4294967296\n");
  root.Write("sys/fs/cgroup/memory/job/memory.stat",
             "cache 5\nactive_file 1\ninactive_file 2\ntotal_active_file 1073741824\ntotal_inactive_file "
             "2147483648\n");
  const auto groups = ReadCgroupMemory(root.path());
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].limit_bytes, 8 * kGiB);
  EXPECT_EQ(groups[0].reclaimable_file_bytes, 3 * kGiB);
  EXPECT_EQ(groups[0].available_bytes(), 7 * kGiB);
}

TEST(MemoryInfoTest, ThisMachine) {
  const auto memory = ReadSystemMemory();
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_LE(memory->available_bytes, memory->total_bytes);
  const ProcessMemory process = ReadProcessMemory();
  ASSERT_TRUE(process.rss_bytes && process.virtual_bytes);
  EXPECT_GT(*process.rss_bytes, 0u);
  EXPECT_GE(*process.virtual_bytes, *process.rss_bytes);
}

}  // namespace
}  // namespace sluice::platform
