// Field case P57: no room is said before anything is written.
#include "platform/disk_room.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/units.h"
#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

TEST(DiskRoomTest, FoldersOfPaths) {
  EXPECT_EQ(FolderOf("a"), ".");
  EXPECT_EQ(FolderOf("/a"), "/");
  EXPECT_EQ(FolderOf("a/b/c"), "a/b");
}

TEST(DiskRoomTest, FatHoldsFilesBelow4GiB) {
  EXPECT_EQ(LargestFileOn(0x4d44), 4 * kGiB - 1);
  EXPECT_EQ(LargestFileOn(0xef53), UINT64_MAX);      // ext4
  EXPECT_EQ(LargestFileOn(0x2011bab0), UINT64_MAX);  // exFAT
}

TEST(DiskRoomTest, SaysWhatIsNeededAndWhatIsThere) {
  const TempFolder folder;
  EXPECT_TRUE(CheckRoom(folder / "f", 1, 1));
  EXPECT_TRUE(CheckRoom(folder / "f", 0, 0));
  const Status full = CheckRoom(folder / "f", 1000, uint64_t{1} << 60);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kIo);
  EXPECT_NE(full.error().message.find("1152921504606846976 bytes) are needed"), std::string::npos);
}

TEST(DiskRoomTest, TheProcesssLimitIsSaidFirst) {
  const TempFolder folder;
  rlimit saved;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &saved), 0);
  rlimit small = saved;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status above = CheckRoom(folder / "f", 1001, 1001), below = CheckRoom(folder / "f", 1000, 5000);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &saved), 0);
  EXPECT_TRUE(below);
  ASSERT_FALSE(above);
  EXPECT_NE(above.error().message.find("ulimit -f"), std::string::npos);
}

}  // namespace
}  // namespace sluice::platform
