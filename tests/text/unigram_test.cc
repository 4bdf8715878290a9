#include "text/unigram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "text/small_vocabulary.h"

namespace sluice::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SmallVocabulary Small(bool bytes) {
  SmallVocabulary small("t5");
  small.Add("<pad>", TokenKind::kControl);
  small.Add("</s>", TokenKind::kControl);
  small.Add("<unk>", TokenKind::kUnknown);
  if (bytes) small.AddByteTokens();
  return small;
}

TEST(Unigram, TakesTheMostProbableSegmentation) {
  SmallVocabulary small = Small(false);
  small.source.add_space_prefix = true;
  for (const auto& [text, score] : {std::pair("▁", -4.f), std::pair("a", -3.f), std::pair("b", -3.f),
                                    std::pair("ab", -7.f), std::pair("▁a", -3.5f), std::pair("bb", -2.f)}) {
    small.Add(text, TokenKind::kNormal, score);
  }
  const Tokenizer t = small.Make();
  EXPECT_THAT(Pieces(t, "ab"), ElementsAre("▁a", "b"));
  EXPECT_THAT(Pieces(t, "abb"), ElementsAre("▁a", "bb"));
  EXPECT_THAT(Pieces(t, "a漢字b"), ElementsAre("▁a", "<unk>", "b"));
  EXPECT_THAT(Pieces(t, "a", {.add_special = true}), ElementsAre("▁a", "</s>"));
  EXPECT_EQ(t.Decode(Ids(t, "a ab")), "a ab");
}

TEST(Unigram, FallsBackToBytesWhereTheVocabularyHasThem) {
  SmallVocabulary small = Small(true);
  small.Add("a", TokenKind::kNormal, -1);
  const Tokenizer t = small.Make();
  EXPECT_THAT(Pieces(t, "aé\xFF"), ElementsAre("a", "<0xC3>", "<0xA9>", "<0xFF>"));
  for (const std::string_view text : {"a漢", "\xFF\x80", "🦙"}) EXPECT_EQ(t.Decode(Ids(t, text)), text);
}

TEST(Unigram, JoinsSpacesWhereTheModelWantsIt) {
  SmallVocabulary small = Small(false);
  for (const std::string_view text : {"▁", "a", "▁a"}) small.Add(text, TokenKind::kNormal, -1);
  small.source.add_space_prefix = true;
  EXPECT_THAT(Pieces(small.Make(), " a  a "), ElementsAre("▁", "▁a", "▁", "▁a", "▁"));
  small.source.remove_extra_whitespaces = true;
  EXPECT_THAT(Pieces(small.Make(), " a  a "), ElementsAre("▁a", "▁a"));
  EXPECT_THAT(Pieces(small.Make(), "   "), ElementsAre());
  small.source.add_space_prefix = false;
  EXPECT_THAT(Pieces(small.Make(), "a  a"), ElementsAre("a", "▁a"));
}

// The best score of all segmentations, by trying them.
double BestScore(const Vocabulary& v, std::string_view text, double unknown) {
  if (text.empty()) return 0;
  double best = -1e300;
  for (size_t size = 1; size <= text.size(); ++size) {
    const TokenId token = v.Find(text.substr(0, size));
    if (token == kNoToken && size > 1) continue;
    best = std::max(
        best, (token == kNoToken ? unknown : v.Score(token)) + BestScore(v, text.substr(size), unknown));
  }
  return best;
}

TEST(Unigram, EqualsItsDefinition) {
  std::mt19937 random(31);
  for (int round = 0; round < 40; ++round) {
    SmallVocabulary small = Small(true);
    std::vector<std::string> texts;
    while (texts.size() < 12) {
      std::string text;
      for (size_t n = 1 + random() % 4; n > 0; --n) text += static_cast<char>('a' + random() % 3);
      if (std::find(texts.begin(), texts.end(), text) != texts.end()) continue;
      texts.push_back(text);
      small.Add(text, TokenKind::kNormal, -static_cast<float>(random() % 1000) / 64);
    }
    const Tokenizer t = small.Make();
    double worst = 0;
    for (TokenId id = 259; t.vocabulary().Contains(id); ++id)
      worst = std::min<double>(worst, t.vocabulary().Score(id));
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (size_t n = 1 + random() % 10; n > 0; --n) text += static_cast<char>('a' + random() % 3);
      double score = 0;
      for (const TokenId id : Ids(t, text)) {
        score += t.vocabulary().Kind(id) == TokenKind::kByte ? worst - 10 : t.vocabulary().Score(id);
      }
      ASSERT_NEAR(score, BestScore(t.vocabulary(), text, worst - 10), 1e-9) << text;
      ASSERT_EQ(t.Decode(Ids(t, text)), text);
    }
  }
}

// A darts-clone double array for the single key "A" with value 0, and for nothing else.
std::vector<std::byte> MapOfA(std::string_view replacement) {
  std::vector<uint32_t> units(256 + 'A' + 2, 0);
  const auto node = [](uint32_t offset, bool leaf, uint32_t label) {
    return (offset << 10) | (leaf ? 1u << 8 : 0u) | label;
  };
  units[0] = node(256, false, 0);                                 // the root's children are at 256 ^ byte
  units[256 ^ 'A'] = node((256 ^ 'A') ^ (256 ^ 'B'), true, 'A');  // its value is at 256 ^ 'B'
  units[256 ^ 'B'] = (1u << 31) | 0;
  std::vector<std::byte> bytes(4 + units.size() * 4 + replacement.size() + 1);
  const uint32_t size = static_cast<uint32_t>(units.size() * 4);
  std::memcpy(bytes.data(), &size, 4);
  std::memcpy(bytes.data() + 4, units.data(), size);
  std::memcpy(bytes.data() + 4 + size, replacement.data(), replacement.size());
  return bytes;
}

TEST(CharsMap, ReplacesWhatItHas) {
  const std::vector<std::byte> bytes = MapOfA("xy");
  const Result<CharsMap> map = CharsMap::Create(bytes);
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->Match("AB").size, 1u);
  EXPECT_EQ(map->Match("AB").replacement, "xy");
  EXPECT_EQ(map->Match("B").size, 0u);
  EXPECT_EQ(map->Match("").size, 0u);
  EXPECT_EQ(map->Match(std::string_view("\0", 1)).size, 0u);

  SmallVocabulary small = Small(false);
  for (const std::string_view text : {"x", "y", "B"}) small.Add(text, TokenKind::kNormal, -1);
  small.source.precompiled_charsmap = bytes;
  EXPECT_THAT(Pieces(small.Make(), "BA"), ElementsAre("B", "x", "y"));
}

TEST(CharsMap, AnExplodingMapIsAnError) {
  const std::vector<std::byte> bytes = MapOfA(std::string(1 << 20, 'x'));
  SmallVocabulary small = Small(false);
  small.source.precompiled_charsmap = bytes;
  const Result<std::vector<TokenId>> ids = small.Make().Encode(std::string(1000, 'A'));
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code, ErrorCode::kResourceExhausted);
}

TEST(CharsMap, RefusesSizesThatDoNotFit) {
  const std::vector<std::byte> whole = MapOfA("xy");
  EXPECT_FALSE(CharsMap::Create(std::span(whole).first(3)).has_value());
  EXPECT_FALSE(CharsMap::Create(std::span(whole).first(100)).has_value());
  EXPECT_FALSE(CharsMap::Create(std::span(whole).first(whole.size() - 1)).has_value());
  std::vector<std::byte> odd = whole;
  odd[0] = std::byte{0xFF};
  odd[3] = std::byte{0xFF};
  const Result<CharsMap> map = CharsMap::Create(odd);
  ASSERT_FALSE(map.has_value());
  EXPECT_EQ(map.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(map.error().message, HasSubstr("tokenizer.ggml.precompiled_charsmap"));
}

TEST(CharsMap, AnyUnitsAreSafe) {
  std::mt19937 random(41);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::byte> bytes(4 + 400);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    const uint32_t size = 320;
    std::memcpy(bytes.data(), &size, 4);
    bytes.back() = std::byte{0};
    const Result<CharsMap> map = CharsMap::Create(bytes);
    ASSERT_TRUE(map.has_value());
    for (int byte = 0; byte < 256; ++byte) {
      const char text[] = {static_cast<char>(byte), static_cast<char>(random()), static_cast<char>(random())};
      ASSERT_LE(map->Match(std::string_view(text, 3)).size, 3u);
    }
  }
}

}  // namespace
}  // namespace sluice::text
