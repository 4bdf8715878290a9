#include "eval/text_windows.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sluice::eval {
namespace {

std::vector<text::TokenId> Ids(size_t count) {
  std::vector<text::TokenId> ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(TextWindowsTest, CutsWholeWindowsAndScoresTheirSecondHalves) {
  const TextWindows windows = *CutWindows(Ids(35), {.context = 10});
  EXPECT_EQ(windows.count(), 3);
  EXPECT_EQ(windows.ids.size(), 30u);
  EXPECT_EQ(windows.first_scored, 5);
  EXPECT_EQ(windows.scored_in_window(), 4);
  EXPECT_EQ(windows.scored(), 12);
  EXPECT_EQ(windows.Window(2)[0], 20);
  EXPECT_EQ(windows.Target(0), 6);
  EXPECT_EQ(windows.Target(3), 9);
  EXPECT_EQ(windows.Target(4), 16);
  EXPECT_EQ(windows.Target(11), 29);
  EXPECT_FALSE(windows.Scores(4));
  EXPECT_TRUE(windows.Scores(5));
  EXPECT_FALSE(windows.Scores(9));
}

TEST(TextWindowsTest, AShortTextIsScoredWhole) {
  const TextWindows windows = *CutWindows(Ids(7), {.context = 10});
  EXPECT_EQ(windows.window, 7);
  EXPECT_EQ(windows.first_scored, 0);
  EXPECT_EQ(windows.scored(), 6);
}

TEST(TextWindowsTest, BosTakesTheFirstPlaceOfEachWindow) {
  const TextWindows windows = *CutWindows(Ids(20), {.context = 10, .bos = 99});
  EXPECT_EQ(windows.ids[0], 99);
  EXPECT_EQ(windows.ids[10], 99);
  EXPECT_EQ(windows.ids[11], 11);
}

TEST(TextWindowsTest, AtMostSoManyWindows) {
  EXPECT_EQ(CutWindows(Ids(100), {.context = 10, .most = 3})->count(), 3);
  EXPECT_EQ(CutWindows(Ids(100), {.context = 10, .most = 30})->count(), 10);
}

TEST(TextWindowsTest, AContextThatGoesOnIsOneWindow) {
  const TextWindows windows = *CutWindows(Ids(100), {.context = 10, .whole = true});
  EXPECT_EQ(windows.count(), 1);
  EXPECT_EQ(windows.window, 100);
  EXPECT_EQ(windows.first_scored, 5);
  EXPECT_EQ(CutWindows(Ids(2), {.context = 10, .whole = true})->scored(), 1);
}

TEST(TextWindowsTest, OneTokenSaysNothing) {
  EXPECT_EQ(CutWindows(Ids(1), {.context = 10}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(CutWindows(Ids(0), {.context = 10}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::eval
