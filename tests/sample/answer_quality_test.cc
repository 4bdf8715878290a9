#include "sample/answer_quality.h"

#include <gtest/gtest.h>

#include <string>

#include "sample/random.h"

namespace sluice::sample {
namespace {

using Verdict = AnswerQuality::Verdict;

// How many tokens of the endless passage "0 1 … period−1 0 1 …" it takes, after `before` others; 0 if over
// 1000.
int TokensUntilLoop(int period, int before = 0) {
  AnswerQuality quality;
  for (int i = 0; i < before; ++i) quality.Add(1000 + i, "w");
  for (int i = 0; i < 1000; ++i) {
    quality.Add(i % period, "w");
    if (quality.verdict() == Verdict::kLoops) return i + 1;
  }
  return 0;
}

TEST(AnswerQualityTest, FindsLoopsOfAnyPeriod) {
  EXPECT_EQ(TokensUntilLoop(1), 64);
  EXPECT_EQ(TokensUntilLoop(2), 64);
  EXPECT_EQ(TokensUntilLoop(16), 64);
  EXPECT_EQ(TokensUntilLoop(17), 68);
  EXPECT_EQ(TokensUntilLoop(64), 256);
  EXPECT_EQ(TokensUntilLoop(65), 0);
  EXPECT_EQ(TokensUntilLoop(10, 777), 64);
}

TEST(AnswerQualityTest, VariedTextIsFine) {
  AnswerQuality quality;
  Random random(5);
  for (int i = 0; i < 5000; ++i) quality.Add(static_cast<int32_t>(random.Uniform() * 3), "é\n\t漢😊");
  EXPECT_EQ(quality.verdict(), Verdict::kFine);
  EXPECT_EQ(quality.hint(), "");
}

TEST(AnswerQualityTest, ALoopThatStopsInTimeIsFine) {
  AnswerQuality quality;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 63; ++i) quality.Add(7, "-");
    quality.Add(1000 + round, "\n");
  }
  EXPECT_EQ(quality.verdict(), Verdict::kFine);
}

TEST(AnswerQualityTest, FindsWhatIsNotText) {
  for (const std::string& bad : {std::string("\xef\xbf\xbd"), std::string("\x01"), std::string("\0", 1),
                                 std::string("\xff"), std::string("\xc2\x85"), std::string("\x7f")}) {
    AnswerQuality quality;
    for (int i = 0; i < 15; ++i) quality.Add(2 * i, "a" + bad);
    EXPECT_EQ(quality.verdict(), Verdict::kFine);
    quality.Add(31, bad + "b");
    EXPECT_EQ(quality.verdict(), Verdict::kNotText);
    EXPECT_NE(quality.hint().find("not text"), std::string::npos);
    for (int i = 0; i < 100; ++i) quality.Add(i, "fine again");
    EXPECT_EQ(quality.verdict(), Verdict::kNotText);
  }
}

TEST(AnswerQualityTest, AFewStrangeCharactersAreFine) {
  AnswerQuality quality;
  for (int i = 0; i < 1000; ++i) quality.Add(i, i % 3 == 0 ? "\xef\xbf\xbd" : "x");
  EXPECT_EQ(quality.verdict(), Verdict::kFine);
}

TEST(AnswerQualityTest, HintsAreOneLine) {
  AnswerQuality quality;
  for (int i = 0; i < 64; ++i) quality.Add(7, "ha ");
  EXPECT_EQ(quality.verdict(), Verdict::kLoops);
  EXPECT_FALSE(quality.hint().empty());
  EXPECT_EQ(quality.hint().find('\n'), std::string_view::npos);
}

}  // namespace
}  // namespace sluice::sample
