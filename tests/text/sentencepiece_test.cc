#include "text/sentencepiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "text/small_vocabulary.h"

namespace sluice::text {
namespace {

using ::testing::ElementsAre;

SmallVocabulary Small() {
  SmallVocabulary small("llama");
  small.Add("<unk>", TokenKind::kUnknown);
  small.Add("<s>", TokenKind::kControl);
  small.Add("</s>", TokenKind::kControl);
  small.AddByteTokens();
  return small;
}

TEST(SentencePiece, JoinsByScore) {
  SmallVocabulary small = Small();
  float score = 0;
  for (const std::string_view text : {"▁h", "he", "▁he", "el", "lo", "▁hello", "▁", "h", "e", "l", "o"}) {
    small.Add(text, TokenKind::kNormal, --score);
  }
  const Tokenizer t = small.Make();
  EXPECT_THAT(Pieces(t, "helo"), ElementsAre("▁he", "lo"));  // "▁h" is best, then "▁he" before "el"
  EXPECT_THAT(Pieces(t, "é"), ElementsAre("▁", "<0xC3>", "<0xA9>"));
}

TEST(SentencePiece, TheSpaceInFrontIsTakenOffAgain) {
  SmallVocabulary small = Small();
  small.Add("▁x", TokenKind::kNormal, -1);
  small.Add("▁", TokenKind::kNormal, -2);
  const Tokenizer t = small.Make();
  EXPECT_TRUE(t.adds_space_prefix());
  EXPECT_THAT(Pieces(t, "x"), ElementsAre("▁x"));
  EXPECT_THAT(Pieces(t, " x"), ElementsAre("▁", "▁x"));
  EXPECT_THAT(Pieces(t, ""), ElementsAre());
  for (const std::string_view text : {"x", " x", "  x ", "", " ", "x\n", "\t", "\xFF", "🦙 é"}) {
    EXPECT_EQ(t.Decode(Ids(t, text)), text);
  }
  // After a control token the text begins anew.
  EXPECT_THAT(Pieces(t, "<s>x</s>x", {.parse_special = true}), ElementsAre("<s>", "▁x", "</s>", "▁x"));

  small.source.add_space_prefix = false;
  EXPECT_THAT(Pieces(small.Make(), " x"), ElementsAre("▁x"));
}

TEST(SentencePiece, WithoutBytesWhatIsUnknownBecomesOneToken) {
  SmallVocabulary small("llama");
  small.Add("<unk>", TokenKind::kUnknown);
  small.Add("a", TokenKind::kNormal, -1);
  small.source.add_space_prefix = false;
  const Tokenizer t = small.Make();
  EXPECT_THAT(Pieces(t, "a漢字a\xFF"), ElementsAre("a", "<unk>", "a", "<unk>"));
}

// The definition: again and again the best-scored pair of neighbours that is a token.
std::vector<std::string> Naive(const Vocabulary& v, std::string_view text) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  for (;;) {
    TokenId best = kNoToken;
    size_t best_at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const TokenId token = v.Find(parts[i] + parts[i + 1]);
      if (token != kNoToken && (best == kNoToken || v.Score(token) > v.Score(best))) {
        best = token;
        best_at = i;
      }
    }
    if (best == kNoToken) return parts;
    parts[best_at] += parts[best_at + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best_at) + 1);
  }
}

TEST(SentencePiece, EqualsItsDefinition) {
  std::mt19937 random(21);
  for (int round = 0; round < 60; ++round) {
    SmallVocabulary small = Small();
    small.source.add_space_prefix = false;
    std::vector<std::string> texts = {"a", "b", "c"};
    for (const std::string& text : texts) small.Add(text, TokenKind::kNormal, -50);
    while (texts.size() < 14) {
      const std::string text = texts[random() % texts.size()] + texts[random() % texts.size()];
      if (std::find(texts.begin(), texts.end(), text) != texts.end()) continue;
      texts.push_back(text);
      small.Add(text, TokenKind::kNormal, -static_cast<float>(random() % 8));  // ties included
    }
    const Tokenizer t = small.Make();
    for (int i = 0; i < 50; ++i) {
      std::string text;
      for (size_t n = 1 + random() % 30; n > 0; --n) text += static_cast<char>('a' + random() % 3);
      ASSERT_EQ(Pieces(t, text), Naive(t.vocabulary(), text)) << text;
    }
  }
}

TEST(SentencePiece, LongRunsTakeLinearTime) {
  SmallVocabulary small = Small();
  for (const std::string_view text : {"a", "aa", "aaaa", "▁", "▁▁", "▁▁▁▁"})
    small.Add(text, TokenKind::kNormal, -1);
  const Tokenizer t = small.Make();
  EXPECT_EQ(Ids(t, std::string(1'000'000, 'a')).size(), 250'001u);
  EXPECT_EQ(t.Decode(Ids(t, std::string(1'000'000, ' '))), std::string(1'000'000, ' '));
}

}  // namespace
}  // namespace sluice::text
