#include "sluice/history.h"

#include <gmock/gmock.h>

#include "platform/temp_folder.h"

namespace sluice::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(HistoryTest, ComesBackAsItWas) {
  const TempFolder folder;
  {
    History history(folder / "history");
    EXPECT_THAT(history.entries(), IsEmpty());
    ASSERT_TRUE(history.Add("one"));
    ASSERT_TRUE(history.Add("two\nlines \\ and \\n"));
    ASSERT_TRUE(history.Add("two\nlines \\ and \\n"));  // the same again
    ASSERT_TRUE(history.Add(""));
    ASSERT_TRUE(history.Add("ends with \\"));
  }
  EXPECT_THAT(History(folder / "history").entries(), ElementsAre("one", "two\nlines \\ and \\n", "ends with \\"));
}

TEST(HistoryTest, IsBounded) {
  const TempFolder folder;
  std::string file;
  for (int i = 0; i < 1500; ++i) file += std::to_string(i) + "\n";
  History history(folder.Write("history", file));
  EXPECT_EQ(history.entries().size(), 1000u);
  EXPECT_EQ(history.entries().back(), "1499");
  ASSERT_TRUE(history.Add(std::string(1 << 20, 'x')));
  EXPECT_EQ(history.entries().back(), "1499");  // long pastes are not kept
}

TEST(HistoryTest, OddFilesDoNoHarm) {
  const TempFolder folder;
  EXPECT_THAT(History(folder.Write("a", "\n\n\\\nb\\")).entries(), ElementsAre("\\"));
  EXPECT_THAT(History(folder.path()).entries(), IsEmpty());
  EXPECT_FALSE(History(folder / "missing/history").Add("x"));
  EXPECT_TRUE(History("").Add("kept in memory only"));
}

}  // namespace
}  // namespace sluice::app
