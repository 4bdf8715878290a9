#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::text {
namespace {

struct Outcome {
  std::string shown;
  std::optional<size_t> matched;
  bool operator==(const Outcome&) const = default;
};

Outcome Streamed(const std::vector<std::string>& stops, const std::vector<std::string_view>& pieces) {
  StopMatcher matcher(stops);
  Outcome outcome;
  for (const std::string_view piece : pieces) matcher.Push(piece, &outcome.shown);
  matcher.Finish(&outcome.shown);
  outcome.matched = matcher.matched();
  return outcome;
}

TEST(StopMatcher, FindsAStopAcrossPieces) {
  EXPECT_EQ(Streamed({"<end>"}, {"Hello <", "en", "d> more"}), (Outcome{"Hello ", 0}));
  EXPECT_EQ(Streamed({"<end>"}, {"Hello <", "en", "x>"}), (Outcome{"Hello <enx>", std::nullopt}));
  EXPECT_EQ(Streamed({"<end>"}, {"Hello <en"}), (Outcome{"Hello <en", std::nullopt}));
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBeAStop) {
  StopMatcher matcher({"</s>"});
  std::string out;
  EXPECT_FALSE(matcher.Push("a < b </", &out));
  EXPECT_EQ(out, "a < b ");
  EXPECT_FALSE(matcher.Push("p>", &out));
  EXPECT_EQ(out, "a < b </p>");
  EXPECT_TRUE(matcher.Push("</s>tail", &out));
  EXPECT_EQ(out, "a < b </p>");
  EXPECT_TRUE(matcher.Push("more", &out));
  matcher.Finish(&out);
  EXPECT_EQ(out, "a < b </p>");
}

TEST(StopMatcher, SeesAStopThatBeginsInsideAFailedOne) {
  EXPECT_EQ(Streamed({"aab"}, {"a", "a", "a", "b"}), (Outcome{"a", 0}));
  EXPECT_EQ(Streamed({"abac", "ba"}, {"xaba", "c"}), (Outcome{"xa", 1}));
  EXPECT_EQ(Streamed({"bc", "abc"}, {"xabc"}), (Outcome{"x", 1}));  // both end there: the longer
}

TEST(StopMatcher, IgnoresEmptyStopsAndTakesAnyBytes) {
  EXPECT_EQ(Streamed({"", "b"}, {"ab"}), (Outcome{"a", 1}));
  EXPECT_EQ(Streamed({}, {"ab"}), (Outcome{"ab", std::nullopt}));
  const std::string nul("x\0y", 3);
  EXPECT_EQ(Streamed({nul}, {std::string_view("a"), std::string_view(nul), "b"}), (Outcome{"a", 0}));
  EXPECT_EQ(Streamed({"é"}, {"caf\xC3", "\xA9"}), (Outcome{"caf", 0}));
}

// The definition, without streaming: the stop string that ends first, of several that end there the longest.
Outcome Whole(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> best;
    for (size_t i = 0; i < stops.size(); ++i) {
      if (stops[i].empty() || !std::string_view(text).substr(0, end).ends_with(stops[i])) continue;
      if (!best || stops[i].size() > stops[*best].size()) best = i;
    }
    if (best) return {text.substr(0, end - stops[*best].size()), best};
  }
  return {text, std::nullopt};
}

TEST(StopMatcher, EqualsItsDefinitionHoweverTheTextIsCut) {
  std::mt19937 random(3);
  const auto word = [&random](size_t max) {
    std::string out;
    for (size_t n = random() % (max + 1); n > 0; --n) out += static_cast<char>('a' + random() % 2);
    return out;
  };
  for (int round = 0; round < 5000; ++round) {
    const std::vector<std::string> stops = {word(5), word(6), word(7)};
    const std::string text = word(24);
    std::vector<std::string_view> pieces;
    for (std::string_view rest = text; !rest.empty();) {
      pieces.push_back(rest.substr(0, 1 + random() % 4));
      rest.remove_prefix(pieces.back().size());
    }
    ASSERT_EQ(Streamed(stops, pieces), Whole(stops, text))
        << text << " | " << stops[0] << " " << stops[1] << " " << stops[2];
  }
}

}  // namespace
}  // namespace sluice::text
