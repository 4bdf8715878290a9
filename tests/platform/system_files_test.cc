#include "platform/system_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

TEST(SystemFilesTest, Numbers) {
  EXPECT_EQ(ParseNumber("42"), 42u);
  EXPECT_EQ(ParseNumber("  42\n"), 42u);
  EXPECT_EQ(ParseNumber("18446744073709551615"), UINT64_MAX);
  for (const char* odd : {"", " ", "-1", "max", "4 2", "42kB", "0x10", "18446744073709551616"}) {
    EXPECT_EQ(ParseNumber(odd), std::nullopt) << odd;
  }
}

TEST(SystemFilesTest, ReadNumber) {
  const TempFolder folder;
  EXPECT_EQ(ReadNumber(folder.Write("n", "1024\n")), 1024u);
  EXPECT_EQ(ReadNumber(folder / "absent"), std::nullopt);
  EXPECT_EQ(ReadNumber(folder.path()), std::nullopt);
}

TEST(SystemFilesTest, CpuLists) {
  EXPECT_THAT(ParseCpuList("0-3,6\n"), Optional(ElementsAre(0, 1, 2, 3, 6)));
  EXPECT_THAT(ParseCpuList("5"), Optional(ElementsAre(5)));
  EXPECT_THAT(ParseCpuList("\n"), Optional(IsEmpty()));
  for (const char* odd : {",", "3-1", "a", "0-", "-3", "0-4000000000", "1,,2", "0-99999"}) {
    EXPECT_EQ(ParseCpuList(odd), std::nullopt) << odd;
  }
}

TEST(SystemFilesTest, FieldsOfTables) {
  constexpr std::string_view kTable = "MemTotal:       100 kB\nMemTotalX: 3\nfile 7\nlast: 9";
  EXPECT_EQ(FindField(kTable, "MemTotal"), "100 kB");
  EXPECT_EQ(FindField(kTable, "file"), "7");
  EXPECT_EQ(FindField(kTable, "last"), "9");
  EXPECT_EQ(FindField(kTable, "Mem"), std::nullopt);
  EXPECT_EQ(FindField("", "file"), std::nullopt);
}

TEST(SystemFilesTest, SplitKeepsEmptyPieces) {
  EXPECT_THAT(Split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(Split("", ','), ElementsAre(""));
}

}  // namespace
}  // namespace sluice::platform
