#include "text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/hash.h"
#include "text/small_vocabulary.h"

namespace sluice::text {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Vocabulary Make(const SmallVocabulary& small) {
  Result<Vocabulary> made = Vocabulary::Create(small.source);
  SLUICE_CHECK(made.has_value());
  return *std::move(made);
}

SmallVocabulary Llama() {
  SmallVocabulary v("llama");
  v.Add("<unk>", TokenKind::kUnknown);
  v.Add("<s>", TokenKind::kControl);
  v.Add("</s>", TokenKind::kControl);
  v.AddByteTokens();
  v.Add("▁a");
  return v;
}

TEST(Vocabulary, KnowsItsTokens) {
  const Vocabulary v = Make(Llama());
  EXPECT_EQ(v.size(), 260u);
  EXPECT_EQ(v.Find("▁a"), 259);
  EXPECT_EQ(v.Text(259), "▁a");
  EXPECT_EQ(v.Find("b"), kNoToken);
  EXPECT_EQ(v.Find(""), kNoToken);
  EXPECT_EQ(v.ByteToken('\n'), 3 + '\n');
  EXPECT_EQ(v.Byte(3 + 255), 255);
  EXPECT_EQ(v.bos(), 1);
  EXPECT_EQ(v.eos(), 2);
  EXPECT_EQ(v.unknown(), 0);
  EXPECT_TRUE(v.add_bos());
  EXPECT_FALSE(v.add_eos());
  EXPECT_TRUE(v.IsControl(1));
  EXPECT_FALSE(v.IsControl(259));
  EXPECT_THAT(v.warnings(), IsEmpty());
}

TEST(Vocabulary, CopiesWhatItNeeds) {
  std::optional<Vocabulary> v;
  {
    const SmallVocabulary small = Llama();
    v = Make(small);
  }
  const Vocabulary moved = std::move(*v);
  EXPECT_EQ(moved.Find("▁a"), 259);
}

TEST(Vocabulary, SpecialIdsOutOfRangeAreDisabledWithAWarning) {
  for (const int64_t bad : {int64_t{260}, int64_t{0xFFFFFFFF}, int64_t{-1},
                            std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    SmallVocabulary small = Llama();
    small.source.bos = small.source.eos = small.source.eot = small.source.eom = small.source.unknown = bad;
    small.source.padding = small.source.mask = small.source.separator = small.source.fim_prefix = bad;
    small.source.fim_pad = small.source.fim_repository = small.source.fim_separator = bad;
    small.source.end_of_generation = {bad, 5};
    small.source.suppressed = {bad, 6, 6};
    small.source.add_bos = true;
    const Vocabulary v = Make(small);
    EXPECT_EQ(v.bos(), kNoToken);
    EXPECT_EQ(v.unknown(), kNoToken);
    EXPECT_EQ(v.padding(), kNoToken);
    EXPECT_FALSE(v.add_bos());
    EXPECT_THAT(v.end_of_generation(), ElementsAre(2, 5));  // "</s>" by its text
    EXPECT_THAT(v.suppressed(), ElementsAre(6));
    EXPECT_THAT(v.warnings(), Contains(HasSubstr("the bos token is")));
    EXPECT_THAT(v.warnings(), Contains(HasSubstr("asks for a bos token")));
  }
}

TEST(Vocabulary, DefaultsThatDoNotFitAreNotUsed) {
  SmallVocabulary small("llama");
  small.Add("x");
  const Vocabulary v = Make(small);
  EXPECT_EQ(v.bos(), kNoToken);
  EXPECT_EQ(v.eos(), kNoToken);
  EXPECT_EQ(v.unknown(), 0);
  EXPECT_FALSE(v.add_bos());
}

TEST(Vocabulary, OddByteTokensAreNormalTokens) {
  SmallVocabulary small = Llama();
  for (const std::string_view text : {"<0x-1>", "<0xZZ>", "<0x1>", "<0xFFF>", "<0x>", "byte", ""}) {
    small.Add(text, TokenKind::kByte);
  }
  const Vocabulary v = Make(small);
  for (TokenId id = 260; v.Contains(id); ++id) EXPECT_EQ(v.Kind(id), TokenKind::kNormal);
  EXPECT_THAT(v.warnings(),
              Contains(HasSubstr("7 byte tokens are not spelled <0xNN> (the first is 260, '<0x-1>')")));
}

TEST(Vocabulary, MissingByteTokensAreReported) {
  SmallVocabulary small("llama");
  small.Add("<unk>", TokenKind::kUnknown);
  for (int byte = 0; byte < 256; ++byte) {
    if (byte != '\n') small.Add(fmt::format("<0x{:02X}>", byte), TokenKind::kByte);
  }
  const Vocabulary v = Make(small);
  EXPECT_EQ(v.ByteToken('\n'), kNoToken);
  EXPECT_THAT(v.warnings(), Contains(HasSubstr("1 of 256 byte tokens are missing")));
}

TEST(Vocabulary, ListsThatAreTooShortAreRefused) {
  SmallVocabulary small = Llama();
  small.source.scores.resize(10);
  Result<Vocabulary> made = Vocabulary::Create(small.source);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(made.error().message, "tokenizer.ggml.scores has 10 entries for 260 tokens");
  small = Llama();
  small.source.token_types.resize(1);
  made = Vocabulary::Create(small.source);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().message, "tokenizer.ggml.token_type has 1 entries for 260 tokens");
}

TEST(Vocabulary, NoTokensIsAnErrorUnlessThereIsNoTokenizer) {
  SmallVocabulary small("gpt2");
  EXPECT_FALSE(Vocabulary::Create(small.source).has_value());
  small.source.model = "none";
  small.source.n_tokens_without_list = std::numeric_limits<size_t>::max();
  const Vocabulary v = Make(small);
  EXPECT_EQ(v.size(), static_cast<size_t>(std::numeric_limits<TokenId>::max()));
  EXPECT_TRUE(v.Contains(5));
  EXPECT_EQ(v.Text(5), "");
  EXPECT_EQ(v.Kind(5), TokenKind::kNormal);
  EXPECT_EQ(v.Find("a"), kNoToken);
}

TEST(Vocabulary, OneTokenIsEnough) {
  SmallVocabulary small("gpt2", "gpt-2");
  small.Add("a");
  EXPECT_EQ(Make(small).Find("a"), 0);
}

TEST(Vocabulary, OddTextsScoresAndTypesBecomeWarnings) {
  SmallVocabulary small = Llama();
  small.Add(std::string_view("n\0l", 3));
  small.Add("bad\xFF");
  small.Add("▁a");
  small.Add("");
  small.Add("score", TokenKind::kNormal, std::numeric_limits<float>::quiet_NaN());
  small.source.token_types.back() = 77;
  const Vocabulary v = Make(small);
  EXPECT_EQ(v.Find(std::string_view("n\0l", 3)), 260);
  EXPECT_EQ(v.Find("▁a"), 259);
  EXPECT_EQ(v.Score(264), -1e9f);
  EXPECT_EQ(v.Kind(264), TokenKind::kNormal);
  EXPECT_THAT(v.warnings(),
              ElementsAre(HasSubstr("2 tokens hold a NUL or invalid UTF-8 (the first is 260)"),
                          HasSubstr("1 token scores are not numbers"), HasSubstr("unknown type"),
                          HasSubstr("repeat the text of an earlier one (the first is 262, '▁a')")));
}

TEST(Vocabulary, TokensMadeToCollideAreRefused) {
  // Texts that all fall into one slot of the table, found by trying: what a hostile file would do.
  SmallVocabulary small("llama");
  const size_t n = 1 << 13, slots = 2 * n;
  for (uint64_t i = 0; small.source.tokens.size() < n; ++i) {
    const std::string text = std::to_string(i);
    const uint64_t hash = HashBytes(std::as_bytes(std::span(text)));
    if (((hash ^ (hash >> 32)) & (slots - 1)) < 4) small.Add(text);
  }
  const Result<Vocabulary> made = Vocabulary::Create(small.source);
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().message, HasSubstr("collide"));
}

TEST(Vocabulary, KnowsTurnEndsByTheirText) {
  SmallVocabulary small("gpt2", "qwen2");
  const TokenId end_of_text = small.Add("<|endoftext|>", TokenKind::kControl);
  const TokenId im_end = small.Add("<|im_end|>", TokenKind::kControl);
  const TokenId plain = small.Add("x");
  const TokenId listed = small.Add("y");
  small.source.eos = im_end;
  small.source.end_of_generation = {listed};
  const Vocabulary v = Make(small);
  EXPECT_TRUE(v.IsEndOfGeneration(end_of_text));
  EXPECT_TRUE(v.IsEndOfGeneration(im_end));
  EXPECT_TRUE(v.IsEndOfGeneration(listed));
  EXPECT_FALSE(v.IsEndOfGeneration(plain));
  EXPECT_FALSE(v.IsEndOfGeneration(-1));
  EXPECT_FALSE(v.IsEndOfGeneration(1000));
  EXPECT_EQ(v.eot(), im_end);
}

TEST(Vocabulary, ATurnEndMarkedAsTextIsTakenAsControl) {
  SmallVocabulary small("gpt2", "qwen2");
  const TokenId id = small.Add("<|im_end|>", TokenKind::kUserDefined);
  const Vocabulary v = Make(small);
  EXPECT_EQ(v.Kind(id), TokenKind::kControl);
  EXPECT_THAT(v.warnings(), Contains(HasSubstr("'<|im_end|>' is not marked as a control token")));
}

TEST(Vocabulary, AnHtmlTagIsNotTheEnd) {
  SmallVocabulary small("llama");
  for (const std::string_view text : {"<pad>", "<eos>", "<bos>"}) small.Add(text, TokenKind::kControl);
  const TokenId tag = small.Add("</s>", TokenKind::kUserDefined);
  small.source.eos = 1;
  const Vocabulary v = Make(small);
  EXPECT_FALSE(v.IsEndOfGeneration(tag));
  EXPECT_TRUE(v.IsEndOfGeneration(1));
}

TEST(Vocabulary, AMessageEndWithinAnAnswerIsNotItsEnd) {
  SmallVocabulary small("gpt2", "gpt-4o");
  const TokenId end = small.Add("<|end|>", TokenKind::kControl);
  const TokenId back = small.Add("<|return|>", TokenKind::kControl);
  const TokenId call = small.Add("<|call|>", TokenKind::kControl);
  small.source.eos = back;
  const Vocabulary v = Make(small);
  EXPECT_FALSE(v.IsEndOfGeneration(end));
  EXPECT_TRUE(v.IsEndOfGeneration(back));
  EXPECT_TRUE(v.IsEndOfGeneration(call));
}

TEST(Vocabulary, FindsInfillTokens) {
  SmallVocabulary small("gpt2", "qwen2");
  const TokenId prefix = small.Add("<|fim_prefix|>", TokenKind::kControl);
  const TokenId suffix = small.Add("<|fim_suffix|>", TokenKind::kControl);
  const TokenId middle = small.Add("<|fim_middle|>", TokenKind::kControl);
  const TokenId file = small.Add("<|file_sep|>", TokenKind::kControl);
  const Vocabulary v = Make(small);
  EXPECT_EQ(v.fim_prefix(), prefix);
  EXPECT_EQ(v.fim_suffix(), suffix);
  EXPECT_EQ(v.fim_middle(), middle);
  EXPECT_TRUE(v.IsEndOfGeneration(file));
  EXPECT_FALSE(v.IsEndOfGeneration(prefix));
}

TEST(Vocabulary, NamesATokenizerItDoesNotKnow) {
  SmallVocabulary small("rwkv");
  small.Add("a");
  const Vocabulary v = Make(small);
  EXPECT_EQ(v.model(), TokenizerModel::kNone);
  EXPECT_EQ(v.unsupported_reason(), "tokenizer model 'rwkv' is not supported");
  EXPECT_EQ(v.size(), 1u);
}

}  // namespace
}  // namespace sluice::text
