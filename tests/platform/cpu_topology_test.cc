// Field case P54: the default must not reach for little cores, for a second hardware thread, or past a quota.
#include "platform/cpu_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CpuTopologyTest : public testing::Test {
 protected:
  // One core for each capacity, all online and allowed.
  void MakeCores(const std::vector<int>& capacities, std::string_view file = "cpu_capacity") {
    const std::string all = "0-" + std::to_string(capacities.size() - 1) + "\n";
    root_.Write("sys/devices/system/cpu/online", all);
    Allow(all);
    for (size_t i = 0; i < capacities.size(); ++i) WriteCore(i, file, std::to_string(capacities[i]) + "\n");
  }
  void WriteCore(size_t id, std::string_view file, std::string_view text) {
    root_.Write("sys/devices/system/cpu/cpu" + std::to_string(id) + "/" + std::string(file), text);
  }
  void Allow(const std::string& list) {
    root_.Write("proc/self/status", "Name:\tsluice\nCpus_allowed:\tff\nCpus_allowed_list:\t" + list);
  }
  void SetQuotaV2(std::string_view group, std::string_view cpu_max) {
    root_.Write("proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    root_.Write("proc/self/cgroup", "0::/a/b\n");
    root_.Write("sys/fs/cgroup" + std::string(group) + "/cpu.max", cpu_max);
  }
  CpuTopology Read() { return ReadCpuTopology(root_.path()); }
  std::vector<int> Big() { return BigCores(Read()); }
  int Threads() { return ChooseThreads(Read()).threads; }

  TempFolder root_;
};

TEST_F(CpuTopologyTest, OnePrimeThreeBigFourLittle) {
  MakeCores({325, 325, 325, 325, 777, 777, 777, 1024});
  EXPECT_THAT(Big(), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(Threads(), 4);
}

TEST_F(CpuTopologyTest, TwoPrimeTwoMiddleFourLittle) {
  MakeCores({160, 160, 160, 160, 498, 498, 1024, 1024});
  EXPECT_THAT(Big(), ElementsAre(4, 5, 6, 7));
}

TEST_F(CpuTopologyTest, FourBigFourLittle) {
  MakeCores({1024, 1024, 1024, 1024, 381, 381, 381, 381});
  EXPECT_THAT(Big(), ElementsAre(0, 1, 2, 3));
}

TEST_F(CpuTopologyTest, TwoBigSixLittle) {
  MakeCores({430, 430, 430, 430, 430, 430, 1024, 1024});
  EXPECT_THAT(Big(), ElementsAre(6, 7));
  EXPECT_EQ(Threads(), 2);
}

TEST_F(CpuTopologyTest, HomogeneousUsesAll) {
  MakeCores({1024, 1024, 1024, 1024});
  EXPECT_THAT(Big(), ElementsAre(0, 1, 2, 3));
}

TEST_F(CpuTopologyTest, KindsThatDifferLittleAreAllBig) {
  MakeCores({800, 800, 800, 800, 800, 800, 1024, 1024});
  EXPECT_EQ(Threads(), 8);
}

TEST_F(CpuTopologyTest, FrequencyStandsInForCapacity) {
  MakeCores({1800000, 1800000, 1800000, 1800000, 2420000, 2420000, 2420000, 2840000},
            "cpufreq/cpuinfo_max_freq");
  EXPECT_TRUE(Read().capacity_is_frequency);
  EXPECT_THAT(Big(), ElementsAre(4, 5, 6, 7));
  // A desktop whose best cores may go a little higher.
  MakeCores({4900000, 4900000, 5100000, 5100000, 4900000, 4900000, 4900000, 4900000},
            "cpufreq/cpuinfo_max_freq");
  EXPECT_EQ(Threads(), 8);
}

TEST_F(CpuTopologyTest, ACapacityThatSomeCoresLackIsNotUsed) {
  MakeCores({1800000, 1800000, 2840000, 2840000}, "cpufreq/cpuinfo_max_freq");
  WriteCore(0, "cpu_capacity", "1024");
  EXPECT_TRUE(Read().capacity_is_frequency);
  EXPECT_THAT(Big(), ElementsAre(2, 3));
  WriteCore(1, "cpufreq/cpuinfo_max_freq", "<unknown>");
  EXPECT_EQ(Threads(), 4);
}

TEST_F(CpuTopologyTest, MissingFiles) {
  EXPECT_THAT(Big(), ElementsAre(0));  // nothing is known at all
  root_.Write("sys/devices/system/cpu/online", "0-3");
  EXPECT_THAT(Big(), ElementsAre(0, 1, 2, 3));
  Allow("1-2\n");
  EXPECT_THAT(Big(), ElementsAre(1, 2));
  root_.Write("sys/devices/system/cpu/online", "garbage");
  EXPECT_THAT(Big(), ElementsAre(1, 2));
}

TEST_F(CpuTopologyTest, OfflineBigCoresAreNotCounted) {
  MakeCores({325, 325, 325, 325, 777, 777, 777, 1024});
  root_.Write("sys/devices/system/cpu/online", "0-3,5\n");
  EXPECT_THAT(Big(), ElementsAre(5));
  root_.Write("sys/devices/system/cpu/online", "0-3\n");
  EXPECT_THAT(Big(), ElementsAre(0, 1, 2, 3));
}

TEST_F(CpuTopologyTest, AffinityLimits) {
  MakeCores({325, 325, 325, 325, 777, 777, 777, 1024});
  Allow("0-4\n");
  EXPECT_THAT(Big(), ElementsAre(4));
}

TEST_F(CpuTopologyTest, OneHardwareThreadPerCore) {
  MakeCores({1024, 1024, 1024, 1024});
  WriteCore(0, "topology/thread_siblings_list", "0,2\n");
  WriteCore(1, "topology/thread_siblings_list", "1,3\n");
  WriteCore(2, "topology/thread_siblings_list", "0,2\n");
  WriteCore(3, "topology/thread_siblings_list", "1,3\n");
  EXPECT_THAT(Big(), ElementsAre(0, 1));
  Allow("2-3\n");
  EXPECT_THAT(Big(), ElementsAre(2, 3));
}

TEST_F(CpuTopologyTest, QuotaOfAnyAncestorCounts) {
  MakeCores({1024, 1024, 1024, 1024});
  EXPECT_TRUE(std::isinf(Read().quota));
  SetQuotaV2("/a/b", "max 100000\n");
  EXPECT_EQ(Threads(), 4);
  SetQuotaV2("/a", "250000 100000\n");
  EXPECT_DOUBLE_EQ(Read().quota, 2.5);
  EXPECT_EQ(Threads(), 2);
  SetQuotaV2("/a/b", "20000 100000\n");  // a fifth of a core
  EXPECT_EQ(Threads(), 1);
  SetQuotaV2("/a/b", "20000 0\n");
  EXPECT_EQ(Threads(), 2);
}

TEST_F(CpuTopologyTest, QuotaV1) {
  MakeCores({1024, 1024, 1024, 1024});
  root_.Write("proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  root_.Write("proc/self/cgroup", "1:cpu:/job\n");
  root_.Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root_.Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Threads(), 4);
  root_.Write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
  root_.Write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Threads(), 3);
}

// A container that makes up its own /proc shows all cores in the affinity mask.
TEST_F(CpuTopologyTest, CpuSetOfAnyAncestorCounts) {
  MakeCores({1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024});
  root_.Write("proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root_.Write("proc/self/cgroup", "0::/a/b\n");
  root_.Write("sys/fs/cgroup/a/cpuset.cpus.effective", "2-5\n");
  EXPECT_THAT(Big(), ElementsAre(2, 3, 4, 5));
  root_.Write("sys/fs/cgroup/a/b/cpuset.cpus.effective", "4-7\n");
  EXPECT_THAT(Big(), ElementsAre(4, 5));
  EXPECT_EQ(Read().online, 8);
  root_.Write("sys/fs/cgroup/a/b/cpuset.cpus.effective", "\n");  // no set of its own
  EXPECT_THAT(Big(), ElementsAre(2, 3, 4, 5));
  root_.Write("sys/fs/cgroup/a/b/cpuset.cpus.effective", "100\n");  // nothing that is online: not believed
  EXPECT_THAT(Big(), ElementsAre(2, 3, 4, 5));
}

TEST_F(CpuTopologyTest, CpuSetV1) {
  MakeCores({1024, 1024, 1024, 1024});
  root_.Write("proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
  root_.Write("proc/self/cgroup", "3:cpuset:/job\n");
  root_.Write("sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n");
  root_.Write("sys/fs/cgroup/cpuset/job/cpuset.cpus", "1-3\n");
  EXPECT_THAT(Big(), ElementsAre(1, 2, 3));
  root_.Write("sys/fs/cgroup/cpuset/job/cpuset.effective_cpus", "1-2\n");
  EXPECT_THAT(Big(), ElementsAre(1, 2));
}

// Android mounts it without the prefixes.
TEST_F(CpuTopologyTest, CpuSetOfAndroid) {
  MakeCores({325, 325, 325, 325, 777, 777, 777, 1024});
  root_.Write("proc/self/mountinfo", "20 1 0:17 / /dev/cpuset rw - cgroup none rw,cpuset,noprefix\n");
  root_.Write("proc/self/cgroup", "3:cpuset:/foreground\n");
  root_.Write("dev/cpuset/cpus", "0-7\n");
  root_.Write("dev/cpuset/foreground/cpus", "0-6\n");
  EXPECT_THAT(Big(), ElementsAre(4, 5, 6));
}

TEST_F(CpuTopologyTest, SaysWhySoManyThreadsAndWhereTheyStay) {
  MakeCores({325, 325, 325, 325, 777, 777, 777, 1024});
  ThreadChoice choice = ChooseThreads(Read());
  EXPECT_EQ(choice.origin, "4: one for each big core, with 8 cores that may be used");
  EXPECT_THAT(choice.cores, ElementsAre(4, 5, 6, 7));
  // What was asked for wins. What has no room on the big cores may run anywhere.
  choice = ChooseThreads(Read(), 2);
  EXPECT_EQ(choice.threads, 2);
  EXPECT_EQ(choice.origin, "2: as asked, with 8 cores that may be used");
  EXPECT_THAT(choice.cores, ElementsAre(4, 5, 6, 7));
  choice = ChooseThreads(Read(), 6);
  EXPECT_EQ(choice.threads, 6);
  EXPECT_THAT(choice.cores, IsEmpty());
  Allow("5\n");
  EXPECT_EQ(ChooseThreads(Read()).origin, "1: one for each core, with 1 core that may be used, 8 online");
  Allow("0-7\n");
  SetQuotaV2("/a", "250000 100000\n");
  choice = ChooseThreads(Read());
  EXPECT_EQ(choice.origin, "2: control groups allow the time of 2.5 cores, with 8 cores that may be used");
  EXPECT_THAT(choice.cores, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(ChooseThreads(Read(), 4).threads, 4);
}

TEST_F(CpuTopologyTest, ThisMachine) {
  const CpuTopology topology = ReadCpuTopology();
  EXPECT_GE(topology.cores.size(), 1u);
  EXPECT_GE(topology.online, static_cast<int>(topology.cores.size()));
  EXPECT_GE(ChooseThreads(topology).threads, 1);
  EXPECT_LE(ChooseThreads(topology).threads,
            static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

}  // namespace
}  // namespace sluice::platform
