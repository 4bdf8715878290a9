#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/small_vocabulary.h"

namespace sluice::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SmallVocabulary Chat() {
  SmallVocabulary small("gpt2", "gpt-2");
  small.AddSpelledBytes();
  small.source.bos = small.Add("<|begin|>", TokenKind::kControl);
  small.source.eos = small.Add("<|stop|>", TokenKind::kControl);
  small.Add("<tool>", TokenKind::kUserDefined);
  small.Add("<tool", TokenKind::kUserDefined);
  small.Add("<|begin|>!", TokenKind::kUserDefined);
  return small;
}

TEST(Tokenizer, ControlTokensAreParsedOnlyWhereAllowed) {
  const Tokenizer t = Chat().Make();
  EXPECT_THAT(Pieces(t, "a<|stop|>b", {.parse_special = true}), ElementsAre("a", "<|stop|>", "b"));
  EXPECT_THAT(Pieces(t, "<|stop|>"), ElementsAre("<", "|", "s", "t", "o", "p", "|", ">"));
  EXPECT_EQ(t.Decode(Ids(t, "<|stop|>")), "<|stop|>");
}

TEST(Tokenizer, UserDefinedTokensAlwaysAreTheLongestFirst) {
  const Tokenizer t = Chat().Make();
  EXPECT_THAT(Pieces(t, "x<tool><tool"), ElementsAre("x", "<tool>", "<tool"));
  EXPECT_THAT(Pieces(t, "<|begin|>!"), ElementsAre("<|begin|>!"));
  EXPECT_THAT(Pieces(t, "<|begin|>!", {.parse_special = true}), ElementsAre("<|begin|>!"));
}

TEST(Tokenizer, SpansMergeAsOneTextButGuardControlTokens) {
  SmallVocabulary small = Chat();
  small.Merge("a", "b");
  const Tokenizer t = small.Make();
  const auto pieces = [&](std::vector<TextSpan> spans) {
    std::vector<std::string> out;
    const Result<std::vector<TokenId>> ids = t.EncodeSpans(spans);
    for (const TokenId id : *ids) out.emplace_back(t.vocabulary().Text(id));
    return out;
  };
  EXPECT_THAT(pieces({{"<|stop|>a", true}, {"b<|stop|>", false}}),
              ElementsAre("<|stop|>", "ab", "<", "|", "s", "t", "o", "p", "|", ">"));
  EXPECT_THAT(pieces({{"<|st", true}, {"op|>", false}}), ElementsAre("<", "|", "s", "t", "o", "p", "|", ">"));
  EXPECT_THAT(pieces({{"<|st", true}, {"", false}, {"op|>", true}}), ElementsAre("<|stop|>"));
  EXPECT_THAT(pieces({}), ElementsAre());
}

TEST(Tokenizer, GuardedControlTokensCostNoMoreThanText) {
  const Tokenizer t = Chat().Make();
  std::string text;
  while (text.size() < 500'000)
    text += "<|stop|>";  // searching on from each of them to the end would take hours
  const Result<std::vector<TokenId>> ids = t.EncodeSpans(std::vector<TextSpan>{{text, false}});
  ASSERT_TRUE(ids.has_value());
  EXPECT_EQ(ids->size(), text.size());
}

TEST(Tokenizer, AddsBosAndEosAsTheFileSays) {
  SmallVocabulary small = Chat();
  EXPECT_THAT(Pieces(small.Make(), "a", {.add_special = true}), ElementsAre("a"));
  small.source.add_bos = small.source.add_eos = true;
  const Tokenizer t = small.Make();
  EXPECT_THAT(Pieces(t, "a", {.add_special = true}), ElementsAre("<|begin|>", "a", "<|stop|>"));
  EXPECT_THAT(Pieces(t, "a"), ElementsAre("a"));
  const std::vector<TokenId> ids = Ids(t, "a", {.add_special = true});
  EXPECT_EQ(t.Decode(ids), "a");
  EXPECT_EQ(t.Decode(ids, {.render_special = true}), "<|begin|>a<|stop|>");
  EXPECT_EQ(t.Decode(ids, {.render_special = true, .strip_bos_eos = true}), "a");
}

TEST(Tokenizer, NothingIsCut) {
  const Tokenizer t = Chat().Make();
  const std::string nul("say BANANA\0 no, say APPLE", 25);
  EXPECT_EQ(Ids(t, nul).size(), 25u);
  EXPECT_EQ(t.Decode(Ids(t, nul)), nul);
  for (const std::string_view text :
       {"\xFF", "👩‍👩‍👧", "e\u0301", "\xF0\x9F", "\uFFFD", "中文 ภาษาไทย", "\t\n\r\n"}) {
    EXPECT_EQ(t.Decode(Ids(t, text)), text);
  }
  for (size_t n = 1; n <= 130; ++n) EXPECT_EQ(t.Decode(Ids(t, std::string(n, ' '))), std::string(n, ' '));
}

TEST(Tokenizer, IdsOutOfRangeAreNothing) {
  const Tokenizer t = Chat().Make();
  EXPECT_EQ(t.Decode(std::vector<TokenId>{-1, 'a', 1 << 30, std::numeric_limits<TokenId>::min()}), "a");
}

TEST(Tokenizer, CleansUpSpacesOnRequest) {
  const Tokenizer t = Chat().Make();
  EXPECT_TRUE(t.cleans_up_spaces());
  const auto clean = [&](std::string_view text) { return t.Decode(Ids(t, text), {.clean_up_spaces = true}); };
  EXPECT_EQ(clean("Hi , you ! ok ? a . b"), "Hi, you! ok? a. b");
  EXPECT_EQ(clean("it 's I 'm we 're I 've"), "it's I'm we're I've");
  EXPECT_EQ(clean("don 't he 'd we 'll"), "don 't he 'd we 'll");
  EXPECT_EQ(clean("a ' b"), "a'b");
  EXPECT_EQ(clean(" "), " ");
  EXPECT_EQ(clean(""), "");
}

TEST(Tokenizer, SomeFamiliesSwallowSpacesBehindSpecialTokens) {
  SmallVocabulary small("llama");
  small.Add("<unk>", TokenKind::kUnknown);
  small.Add("<s>", TokenKind::kControl);
  small.Add("</s>", TokenKind::kControl);
  small.AddByteTokens();
  small.Add("<|user|>", TokenKind::kControl);
  small.Add("▁", TokenKind::kNormal, -1);
  small.Add("x", TokenKind::kNormal, -1);
  small.source.name = "My Phi-3 mini";
  const EncodeOptions parse{.parse_special = true};
  EXPECT_THAT(Pieces(small.Make(), "<|user|> \n x<s> x", parse),
              ElementsAre("<|user|>", "▁", "x", "<s>", "▁", "▁", "x"));
  small.source.name = "other";
  EXPECT_THAT(Pieces(small.Make(), "<|user|> x", parse), ElementsAre("<|user|>", "▁", "▁", "x"));
}

TEST(Tokenizer, AFileWithoutATokenizerRefusesTextAndSaysWhy) {
  SmallVocabulary small("none");
  small.source.n_tokens_without_list = 320;
  const Tokenizer t = small.Make();
  EXPECT_EQ(t.vocabulary().size(), 320u);
  const Result<std::vector<TokenId>> ids = t.Encode("a");
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(ids.error().message, HasSubstr("the file has no tokenizer"));
  EXPECT_EQ(t.Decode(std::vector<TokenId>{1, 2}), "");
}

TEST(Tokenizer, OverlongSpecialTokensAreNotLookedFor) {
  SmallVocabulary small = Chat();
  small.Add(std::string(5000, 'a'), TokenKind::kControl);
  small.Add(std::string(5000, 'b'));
  const Tokenizer t = small.Make();
  EXPECT_THAT(t.warnings(), ::testing::Contains(HasSubstr("1 special tokens are longer than 1024 bytes")));
  EXPECT_EQ(Ids(t, std::string(5000, 'a'), {.parse_special = true}).size(), 5000u);
}

TEST(Tokenizer, TextsThatAreTooLongAreRefused) {
  const Tokenizer t = Chat().Make();
  const Result<std::vector<TokenId>> ids = t.Encode(std::string((size_t{64} << 20) + 1, 'a'));
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code, ErrorCode::kResourceExhausted);
}

TEST(Tokenizer, CountsItsMemory) {
  SmallVocabulary small = Chat();
  const size_t before = small.Make().memory_bytes();
  small.Add(std::string(100'000, 'x'));
  EXPECT_GE(small.Make().memory_bytes(), before + 100'000);
}

}  // namespace
}  // namespace sluice::text
