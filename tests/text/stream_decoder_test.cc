#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "text/small_vocabulary.h"

namespace sluice::text {
namespace {

Tokenizer ByteFallback() {
  SmallVocabulary v("llama");
  v.Add("<unk>", TokenKind::kUnknown);
  v.Add("<s>", TokenKind::kControl);
  v.Add("</s>", TokenKind::kControl);
  v.AddByteTokens();
  v.Add("▁hi", TokenKind::kNormal, -1);
  return v.Make();
}

std::vector<TokenId> BytesOf(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(3 + static_cast<uint8_t>(c));
  return ids;
}

TEST(StreamDecoder, NeverShowsHalfACharacter) {
  const Tokenizer tokenizer = ByteFallback();
  const std::string text = "👩‍👩‍👧é漢";
  StreamDecoder decoder(tokenizer);
  std::string all;
  for (const TokenId id : BytesOf(text)) {
    std::string piece;
    decoder.Push(id, &piece);
    EXPECT_TRUE(IsValidUtf8(piece));
    all += piece;
    EXPECT_TRUE(text.starts_with(all));
  }
  EXPECT_FALSE(decoder.holds_back());
  decoder.Finish(&all);
  EXPECT_EQ(all, text);
}

TEST(StreamDecoder, AnIncompleteTailIsReplacedOnceAsInTheWholeText) {
  const Tokenizer tokenizer = ByteFallback();
  for (const std::string_view tail : {"\xF0", "\xF0\x9F", "\xF0\x9F\x98", "\xE6\xBC"}) {
    const std::vector<TokenId> ids = BytesOf("ok" + std::string(tail));
    StreamDecoder decoder(tokenizer);
    std::string streamed;
    for (const TokenId id : ids) decoder.Push(id, &streamed);
    EXPECT_EQ(streamed, "ok");
    EXPECT_TRUE(decoder.holds_back());
    decoder.Finish(&streamed);
    EXPECT_EQ(streamed, "ok\xEF\xBF\xBD");
    EXPECT_EQ(streamed, tokenizer.DecodeText(ids));
  }
}

TEST(StreamDecoder, EqualsTheWholeTextForAnyTokens) {
  const Tokenizer tokenizer = ByteFallback();
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> ids;
    for (int i = 0; i < 8; ++i) {
      const int pick = static_cast<int>(random() % 4);
      if (pick == 0) ids.push_back(259);
      if (pick == 1)
        ids.push_back(static_cast<TokenId>(random() % 300) - 10);  // control tokens and nonsense too
      if (pick >= 2) {
        const std::vector<TokenId> bytes = BytesOf("漢");
        ids.insert(ids.end(), bytes.begin() + static_cast<ptrdiff_t>(random() % 3), bytes.end());
      }
    }
    StreamDecoder decoder(tokenizer, {.strip_leading_space = true});
    std::string streamed;
    for (const TokenId id : ids) decoder.Push(id, &streamed);
    decoder.Finish(&streamed);
    // The decoder drops the space in front of the first text, Decode that of the first token: the same unless
    // control tokens come first.
    std::erase_if(ids, [&](TokenId id) { return tokenizer.vocabulary().Contains(id) && id < 3; });
    std::erase_if(ids, [&](TokenId id) { return !tokenizer.vocabulary().Contains(id); });
    ASSERT_EQ(streamed, tokenizer.DecodeText(ids));
  }
}

TEST(StreamDecoder, HidesControlTokensUnlessAsked) {
  const Tokenizer tokenizer = ByteFallback();
  std::string hidden, shown;
  StreamDecoder quiet(tokenizer), loud(tokenizer, {.render_special = true});
  for (const TokenId id : {1, 259, 2}) {
    quiet.Push(id, &hidden);
    loud.Push(id, &shown);
  }
  EXPECT_EQ(hidden, " hi");
  EXPECT_EQ(shown, "<s> hi</s>");
}

TEST(StreamDecoder, CanDropTheSpaceInFrontOfAnAnswer) {
  const Tokenizer tokenizer = ByteFallback();
  StreamDecoder decoder(tokenizer, {.strip_leading_space = true});
  std::string out;
  for (const TokenId id : {1, 259, 259})
    decoder.Push(id, &out);  // the control token shows nothing and isn't the start
  EXPECT_EQ(out, "hi hi");
}

}  // namespace
}  // namespace sluice::text
