#include "sample/penalties.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sample/dry.h"
#include "sample/random.h"
#include "sample/token_history.h"

namespace sluice::sample {
namespace {

TEST(TokenHistoryTest, KeepsTheNewest) {
  TokenHistory history(3);
  EXPECT_EQ(history.size(), 0u);
  for (int token = 1; token <= 5; ++token) {
    history.Push(token);
    for (size_t i = 0; i < history.size(); ++i) EXPECT_EQ(history[i], token - static_cast<int>(i));
  }
  EXPECT_EQ(history.size(), 3u);
  history.Clear();
  EXPECT_EQ(history.size(), 0u);
  TokenHistory none(0);
  none.Push(1);
  EXPECT_EQ(none.size(), 0u);
}

TEST(PenaltiesTest, FollowTheFormulas) {
  TokenHistory history(6);
  Penalties penalties({.window = 5, .repeat = 2, .presence = 0.25f, .frequency = 0.5f}, 8);
  for (const int token : {7, 7, 7, 1, 2, 2, 3, 2}) {  // the window holds 1 2 2 3 2
    history.Push(token);
    penalties.Accept(history);
  }
  const std::vector<float> before = {1, 4, -4, 0, 5, 5, 5, 5};
  const std::vector<float> after = {1, 2 - 0.75f, -8 - 1.75f, 0 - 0.75f, 5, 5, 5, 5};
  for (int round = 0; round < 2; ++round) {  // the counts come back after each use
    std::vector<float> logits = before;
    penalties.Apply(history, logits);
    EXPECT_EQ(logits, after);
  }
}

TEST(PenaltiesTest, NothingToDoTakesNoMemory) {
  EXPECT_EQ(Penalties({.window = 64, .repeat = 1, .presence = 0, .frequency = 0}, 1000).memory_bytes(), 0u);
  EXPECT_EQ(Penalties({.window = 0, .repeat = 2, .presence = 1, .frequency = 1}, 1000).memory_bytes(), 0u);
}

// Tokens are letters: token 0 is "a". Digits stand for pieces with more in them.
std::string Piece(int32_t token) {
  switch (token) {
    case 26:
      return "\n";
    case 27:
      return ".\n\n";
    case 28:
      return "<";
    case 29:
      return "br>";
    default:
      return std::string(1, static_cast<char>('a' + token));
  }
}
constexpr size_t kVocab = 30;

int32_t Token(char c) {
  switch (c) {
    case '\n':
      return 26;
    case '.':
      return 27;
    case '<':
      return 28;
    case '>':
      return 29;
    default:
      return c - 'a';
  }
}

// What DRY takes from each token's logit after `text`.
std::vector<float> DryPenalties(const std::string& text, Dry::Settings settings,
                                std::vector<std::string> breakers = {}) {
  TokenHistory history(settings.window);
  Dry dry(
      settings, std::move(breakers), [](int32_t token, std::string* out) { *out += Piece(token); }, kVocab);
  for (const char c : text) {
    history.Push(Token(c));
    dry.Accept(Token(c));
  }
  std::vector<float> first(kVocab), second(kVocab);
  dry.Apply(history, first);
  dry.Apply(history, second);
  EXPECT_EQ(first, second);  // scratch space is clean again
  for (float& penalty : first) penalty = 0 - penalty;
  return first;
}

std::vector<float> Only(std::initializer_list<std::pair<char, float>> penalties) {
  std::vector<float> all(kVocab);
  for (const auto& [c, penalty] : penalties) all[static_cast<size_t>(Token(c))] = penalty;
  return all;
}

const Dry::Settings kDry = {.window = 100, .multiplier = 1, .base = 2, .allowed_length = 2};

TEST(DryTest, PunishesWhatWouldRepeatTheLongestRun) {
  EXPECT_EQ(DryPenalties("abcxabc", kDry), Only({{'x', 2}}));  // "abc" came before, then x: 2^(3−2)
  EXPECT_EQ(DryPenalties("abxaby", kDry), Only({}));           // ends in "y", never seen before
  EXPECT_EQ(DryPenalties("abxab", kDry), Only({{'x', 1}}));    // just the allowed length
  EXPECT_EQ(DryPenalties("bxab", kDry), Only({}));             // one token is too short
  EXPECT_EQ(DryPenalties("abcxdbcybc", kDry), Only({{'x', 1}, {'y', 1}}));
  EXPECT_EQ(DryPenalties("abcdxbcdxabcd", kDry), Only({{'x', 4}}));  // the longer of two
  EXPECT_EQ(DryPenalties("aaaaa", kDry), Only({{'a', 4}}));          // overlapping: "aaaa" before the last
}

TEST(DryTest, StopsAtBreakersHoweverTheyAreCut) {
  EXPECT_EQ(DryPenalties("abc\nxabc\nx", kDry), Only({{'a', 8}}));
  EXPECT_EQ(DryPenalties("abc\nxabc\nx", kDry, {"\n"}), Only({}));         // the run is "x"
  EXPECT_EQ(DryPenalties("abcxab\nabc", kDry, {"\n"}), Only({{'x', 2}}));  // breakers earlier don't matter
  EXPECT_EQ(DryPenalties("abc.xabc.", kDry, {"\n"}), Only({}));            // inside a longer piece
  EXPECT_EQ(DryPenalties("ab<>cab<>c", kDry, {"<br>"}), Only({}));         // over two tokens
  EXPECT_EQ(DryPenalties("ab<>cab<>c", kDry, {"<hr>"}), Only({{'a', 8}}));
  EXPECT_EQ(DryPenalties("ab\nab", kDry, {"\n"}), Only({}));  // "\n" itself may follow again
  EXPECT_EQ(DryPenalties("ab.ab", kDry, {"\n"}), Only({}));
  EXPECT_EQ(DryPenalties("b<>xb<", kDry, {"<br>"}), Only({}));  // ">" would complete a breaker
}

TEST(DryTest, LooksOnlyAtTheWindow) {
  Dry::Settings settings = kDry;
  settings.window = 7;
  EXPECT_EQ(DryPenalties("abcxabc", settings), Only({{'x', 2}}));
  settings.window = 6;
  EXPECT_EQ(DryPenalties("abcxabc", settings), Only({{'x', 1}}));  // "bc" only
}

TEST(DryTest, LongRunsStayFinite) {
  Dry::Settings settings = kDry;
  settings.window = 5000;
  settings.base = 1000;
  EXPECT_EQ(DryPenalties(std::string(5000, 'a'), settings)[0], 1e30f);
  settings.base = 1;
  EXPECT_EQ(DryPenalties(std::string(5000, 'a'), settings)[0], 1);
}

TEST(DryTest, AgreesWithTheDefinitionOnRandomText) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    const int length = static_cast<int>(random.Uniform() * 60);
    for (int i = 0; i < length; ++i)
      text += random.Uniform() < 0.05 ? '\n' : random.Uniform() < 0.5 ? 'a' : 'b';
    std::vector<float> expected(kVocab);
    const auto size = text.size();
    const size_t run = text.npos == text.rfind('\n') ? size : size - 1 - text.rfind('\n');
    for (size_t end = 1; end < size; ++end) {  // text[end] followed the run that ends before it
      size_t n = 0;
      while (n < end && n < run && text[end - 1 - n] == text[size - 1 - n]) ++n;
      float& worst = expected[static_cast<size_t>(Token(text[end]))];
      if (n >= 2 && text[end] != '\n')
        worst = std::max(worst, static_cast<float>(std::pow(2.0, double(n) - 2)));
    }
    EXPECT_EQ(DryPenalties(text, kDry, {"\n"}), expected) << text;
  }
}

}  // namespace
}  // namespace sluice::sample
