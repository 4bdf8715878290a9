#include "text/byte_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "text/small_vocabulary.h"

namespace sluice::text {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BytePair, MergesByRank) {
  SmallVocabulary small("gpt2", "gpt-2");
  small.AddSpelledBytes();
  small.Merge("b", "c");
  small.Merge("a", "b");
  small.Merge("a", "bc");
  const Tokenizer t = small.Make();
  EXPECT_THAT(Pieces(t, "abc"), ElementsAre("abc"));
  EXPECT_THAT(Pieces(t, "abab"), ElementsAre("ab", "ab"));
  EXPECT_THAT(Pieces(t, "a bc"), ElementsAre("a", "Ġ", "bc"));  // never across words
}

TEST(BytePair, TheLeftmostOfEqualsGoesFirst) {
  SmallVocabulary small("gpt2", "gpt-2");
  small.AddSpelledBytes();
  small.Merge("a", "a");
  small.Merge("aa", "aa");
  const Tokenizer t = small.Make();
  EXPECT_THAT(Pieces(t, "aaaaaaa"), ElementsAre("aaaa", "aa", "a"));
}

// The definition: again and again the best pair of the whole word.
std::vector<std::string> Naive(const std::vector<std::pair<std::string, std::string>>& merges,
                               std::string_view word) {
  std::vector<std::string> parts;
  for (const char c : word) parts.emplace_back(1, c);
  for (;;) {
    size_t best_rank = merges.size(), best_at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank] == std::pair(parts[i], parts[i + 1])) {
          best_rank = rank;
          best_at = i;
        }
      }
    }
    if (best_rank == merges.size()) return parts;
    parts[best_at] += parts[best_at + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best_at) + 1);
  }
}

TEST(BytePair, EqualsItsDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    SmallVocabulary small("gpt2", "gpt-2");
    small.AddSpelledBytes();
    std::vector<std::string> texts = {"a", "b", "c"};
    std::vector<std::pair<std::string, std::string>> merges;
    while (merges.size() < 12) {
      const std::pair pair(texts[random() % texts.size()], texts[random() % texts.size()]);
      if (std::find(merges.begin(), merges.end(), pair) != merges.end()) continue;
      merges.push_back(pair);
      texts.push_back(pair.first + pair.second);
      small.Merge(pair.first, pair.second);
    }
    const Tokenizer t = small.Make();
    for (int i = 0; i < 50; ++i) {
      std::string word;
      for (size_t n = 1 + random() % 30; n > 0; --n) word += static_cast<char>('a' + random() % 3);
      ASSERT_EQ(Pieces(t, word), Naive(merges, word)) << word;
    }
  }
}

TEST(BytePair, AnyBytesComeBack) {
  SmallVocabulary small("gpt2", "llama-bpe");
  small.AddSpelledBytes();
  small.Merge("Ġ", "a");
  const Tokenizer t = small.Make();
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  std::mt19937 random(12);
  for (int round = 0; round < 500; ++round) {
    EXPECT_EQ(t.Decode(Ids(t, every)), every);
    std::shuffle(every.begin(), every.end(), random);
  }
}

TEST(BytePair, AByteWithoutATokenIsShownAsReplacement) {
  SmallVocabulary small("gpt2", "gpt-2");
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    AppendUtf8(kByteSpelling[static_cast<size_t>(byte)], &text);
    if (byte != 0xFF && byte != '#') small.Add(text);
  }
  small.Add("ÿ", TokenKind::kUserDefined);  // the letter, not the byte FF that is spelled like it
  const Tokenizer t = small.Make();
  EXPECT_EQ(t.Decode(Ids(t, "a\xFFz")), "a\xEF\xBF\xBDz");
  EXPECT_EQ(t.Decode(Ids(t, "ÿ")), "ÿ");
  EXPECT_THAT(t.warnings(), Contains(HasSubstr("1 of 256 bytes have no token")));
}

TEST(BytePair, WholeWordsBeforeMergesWhereTheFamilyWantsIt) {
  for (const auto& [pre, whole] : {std::pair("llama-bpe", true), std::pair("gpt-2", false)}) {
    SmallVocabulary small("gpt2", pre);
    small.AddSpelledBytes();
    small.Add("Ġword");  // no merge leads to it
    const Tokenizer t = small.Make();
    EXPECT_EQ(Pieces(t, " word").size(), whole ? 1u : 5u) << pre;
  }
}

TEST(BytePair, MergesOfAbsentTokensAreReportedAndNotUsed) {
  SmallVocabulary small("gpt2", "gpt-2");
  small.AddSpelledBytes();
  small.source.merges = {small.Keep("a b"), small.Keep("nospace"), small.Keep(""),
                         small.Keep(" "),   small.Keep("zz y"),    small.Keep("a  b")};
  const Tokenizer t = small.Make();
  EXPECT_THAT(Pieces(t, "ab"), ElementsAre("a", "b"));
  EXPECT_THAT(t.warnings(),
              Contains(HasSubstr("6 of 6 merges name texts that are not tokens (the first is 0, 'a b')")));
}

TEST(BytePair, MissingOrUnknownPreTokenizerGivesOneWarningAndTheDefault) {
  const std::string_view text = "They're 1234567 d'été  \n\n x";
  SmallVocabulary named("gpt2", "default");
  named.AddSpelledBytes();
  named.Merge("1", "2");
  for (const std::string_view pre : {"", "nonsense"}) {
    SmallVocabulary small("gpt2", pre);
    small.AddSpelledBytes();
    small.Merge("1", "2");
    const Tokenizer t = small.Make();
    ASSERT_EQ(t.warnings().size(), 1u);
    EXPECT_THAT(t.warnings()[0], HasSubstr(pre.empty() ? "names no pre-tokenizer" : "'nonsense'"));
    EXPECT_EQ(Ids(t, text), Ids(named.Make(), text));
  }
}

TEST(BytePair, CharactersWithSpacesMarkedAndBytesForTheRest) {
  SmallVocabulary small("gemma4");
  small.AddByteTokens();
  for (const std::string_view text : {"▁", "a", "é", "\n"}) small.Add(text);
  small.Merge("▁", "a");
  small.Add("\n\n");
  const Tokenizer t = small.Make();
  EXPECT_THAT(Pieces(t, "a aé"), ElementsAre("a", "▁a", "é"));
  EXPECT_THAT(Pieces(t, "漢"), ElementsAre("<0xE6>", "<0xBC>", "<0xA2>"));
  EXPECT_THAT(Pieces(t, "a\n\na\n\n\n"), ElementsAre("a", "\n\n", "a", "\n", "\n", "\n"));
  for (const std::string_view text : {" a  é漢\xFF\n\n ", "\x80", "🦙 a"})
    EXPECT_EQ(t.Decode(Ids(t, text)), text);
}

TEST(BytePair, LongRunsTakeLinearTime) {
  SmallVocabulary small("gpt2", "gpt-2");
  small.AddSpelledBytes();
  std::string run = "a";
  for (int i = 0; i < 6; ++i) {
    small.Merge(run, run);
    run += run;
  }
  const Tokenizer t = small.Make();
  const std::string text(1'000'000, 'a');  // quadratic merging would take hours
  EXPECT_EQ(Ids(t, text).size(), 1'000'000u / 64);
}

}  // namespace
}  // namespace sluice::text
