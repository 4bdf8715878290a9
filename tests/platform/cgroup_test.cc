#include "platform/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CgroupTest : public testing::Test {
 protected:
  CgroupChain Find(std::string_view cgroup, std::string_view mountinfo,
                   std::string_view controller = "memory") {
    root_.Write("proc/self/cgroup", cgroup);
    root_.Write("proc/self/mountinfo", mountinfo);
    CgroupChain chain = FindCgroups(controller, root_.path());
    for (std::string& folder : chain.folders) folder.erase(0, root_.path().size());
    return chain;
  }
  TempFolder root_;
};

constexpr std::string_view kV2Mount =
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr std::string_view kV1Mounts =
    "22 1 8:1 / / rw - ext4 /dev/root rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";

TEST_F(CgroupTest, V2ListsAllAncestors) {
  const auto chain = Find("0::/user.slice/user-1000.slice/app.scope\n", kV2Mount);
  EXPECT_TRUE(chain.v2);
  EXPECT_THAT(chain.folders, ElementsAre("/sys/fs/cgroup/user.slice/user-1000.slice/app.scope",
                                         "/sys/fs/cgroup/user.slice/user-1000.slice",
                                         "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"));
}

TEST_F(CgroupTest, V1FindsTheHierarchyOfTheController) {
  constexpr std::string_view kGroups = "4:memory:/a/b\n2:cpu,cpuacct:/c\n1:name=systemd:/\n";
  const auto memory = Find(kGroups, kV1Mounts);
  EXPECT_FALSE(memory.v2);
  EXPECT_THAT(memory.folders,
              ElementsAre("/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"));
  EXPECT_THAT(Find(kGroups, kV1Mounts, "cpu").folders,
              ElementsAre("/sys/fs/cgroup/cpu,cpuacct/c", "/sys/fs/cgroup/cpu,cpuacct"));
  EXPECT_THAT(Find(kGroups, kV1Mounts, "io").folders, IsEmpty());
}

// systemd's hybrid layout: v1 controllers, and a v2 tree that has none of them.
TEST_F(CgroupTest, HybridPrefersTheVersionThatNamesTheController) {
  const std::string mounts =
      std::string(kV1Mounts) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  const auto memory = Find("0::/x\n4:memory:/y\n", mounts);
  EXPECT_FALSE(memory.v2);
  EXPECT_THAT(memory.folders, ElementsAre("/sys/fs/cgroup/memory/y", "/sys/fs/cgroup/memory"));
  const auto pids = Find("4:memory:/y\n0::/x\n", mounts, "pids");
  EXPECT_TRUE(pids.v2);
  EXPECT_THAT(pids.folders, ElementsAre("/sys/fs/cgroup/unified/x", "/sys/fs/cgroup/unified"));
}

// A container without a cgroup namespace: the path is the host's, of which only the container's
// part is mounted.
TEST_F(CgroupTest, ContainerSeesItsOwnPart) {
  constexpr std::string_view kMount =
      "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n";
  EXPECT_THAT(Find("4:memory:/docker/abc\n", kMount).folders, ElementsAre("/sys/fs/cgroup/memory"));
  EXPECT_THAT(Find("4:memory:/docker/abc/job\n", kMount).folders,
              ElementsAre("/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory"));
  // Not inside: /docker/abcd only begins alike; "/.." is above the namespace.
  EXPECT_THAT(Find("4:memory:/docker/abcd\n", kMount).folders, ElementsAre("/sys/fs/cgroup/memory"));
  EXPECT_THAT(Find("0::/../other\n", kV2Mount).folders, ElementsAre("/sys/fs/cgroup"));
}

TEST_F(CgroupTest, EscapedMountPoints) {
  EXPECT_THAT(Find("0::/\n", "29 23 0:26 / /mnt/my\\040groups rw - cgroup2 cgroup2 rw\n").folders,
              ElementsAre("/mnt/my groups"));
}

TEST_F(CgroupTest, OddTablesGiveNothing) {
  EXPECT_THAT(FindCgroups("memory", root_.path()).folders, IsEmpty());
  EXPECT_THAT(Find("", "").folders, IsEmpty());
  EXPECT_THAT(Find("::::\nx\n0:\n", "-\n - \na b - cgroup2\n").folders, IsEmpty());
  EXPECT_THAT(Find("0::/a\n", "29 23 0:26 /\n").folders, IsEmpty());
}

}  // namespace
}  // namespace sluice::platform
