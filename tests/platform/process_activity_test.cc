#include "platform/process_activity.h"

#include <gtest/gtest.h>

#include "platform/mapping.h"
#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

TEST(ProcessActivityTest, CountersOfTheKernel) {
  const TempFolder root;
  root.Write("proc/self/stat", "7 (a b) R) S 1 7 7 0 -1 4194304 99 1 12 2 0 0 0 0 20 0 1 0 99661\n");
  root.Write("proc/self/io", "rchar: 6976\nwchar: 0\nread_bytes: 8192\nwrite_bytes: 1\n");
  const ProcessActivity activity = ReadProcessActivity(root.path());
  EXPECT_EQ(activity.minor_faults, 99u);
  EXPECT_EQ(activity.major_faults, 12u);
  EXPECT_EQ(activity.storage_bytes, 8192u);
}

TEST(ProcessActivityTest, WhatIsMissingOrOddIsUnknown) {
  const TempFolder root;
  for (const char* stat : {"", "7 (cat", "7 (cat) S 1 7", "7 (cat) S 1 7 7 0 -1 4194304 x 1 y 2 0\n"}) {
    root.Write("proc/self/stat", stat);
    root.Write("proc/self/io", "rchar: 1\nread_bytes: many\n");
    const ProcessActivity activity = ReadProcessActivity(root.path());
    EXPECT_EQ(activity.minor_faults, std::nullopt) << stat;
    EXPECT_EQ(activity.major_faults, std::nullopt) << stat;
    EXPECT_EQ(activity.storage_bytes, std::nullopt);
  }
  const TempFolder empty;
  EXPECT_EQ(ReadProcessActivity(empty.path()).minor_faults, std::nullopt);
}

TEST(ProcessActivityTest, ThisProcess) {
  const ProcessActivity before = ReadProcessActivity();
  ASSERT_TRUE(before.minor_faults && before.major_faults);
  auto fresh = Mapping::Anonymous(size_t{32} << 20);
  ASSERT_TRUE(fresh);
  fresh->Touch();
  const ProcessActivity after = ReadProcessActivity();
  EXPECT_GT(*after.minor_faults, *before.minor_faults);
  EXPECT_GE(*after.major_faults, *before.major_faults);
}

}  // namespace
}  // namespace sluice::platform
