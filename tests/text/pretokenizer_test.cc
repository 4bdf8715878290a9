#include "text/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "text/utf8.h"

namespace sluice::text {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Split(std::string_view name, std::string_view text) {
  const PreTokenizerSpec* spec = FindPreTokenizer(name);
  SLUICE_CHECK(spec != nullptr);
  std::vector<uint32_t> ends;
  const Status status = PreTokenizer(*spec).Split(text, &ends);
  EXPECT_TRUE(status.has_value());
  std::vector<std::string> pieces;
  uint32_t begin = 0;
  for (const uint32_t end : ends) {
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return pieces;
}

TEST(PreTokenizerTable, NamesAreUniqueAndFound) {
  std::set<std::string_view> seen;
  for (const PreTokenizerSpec& spec : PreTokenizers()) {
    ASSERT_FALSE(spec.names.empty());
    ASSERT_FALSE(spec.steps.empty());
    for (const std::string_view name : spec.names) {
      EXPECT_TRUE(seen.insert(name).second) << name;
      EXPECT_EQ(FindPreTokenizer(name), &spec) << name;
    }
  }
  EXPECT_EQ(FindPreTokenizer(""), nullptr);
  EXPECT_EQ(FindPreTokenizer("nonsense"), nullptr);
  EXPECT_EQ(FindPreTokenizer("default"), &DefaultPreTokenizer());
}

// What tells the families apart: contractions, digits, spaces before words, line ends, case.
TEST(PreTokenizer, Gpt2) {
  EXPECT_THAT(Split("gpt-2", "They're  12345,\n\n x"),
              ElementsAre("They", "'re", " ", " 12345", ",", "\n\n", " x"));
  EXPECT_THAT(Split("gpt-2", "CAN'T"), ElementsAre("CAN", "'", "T"));
  EXPECT_THAT(Split("gpt-2", "a\tb "), ElementsAre("a", "\t", "b", " "));
}

TEST(PreTokenizer, Llama3) {
  EXPECT_THAT(Split("llama-bpe", "They'RE  1234567 d'été  \n\n x"),
              ElementsAre("They", "'RE", " ", " ", "123", "456", "7", " d", "'été", "  \n\n", " x"));
  EXPECT_THAT(Split("llama-bpe", "f(x);\r\n"), ElementsAre("f", "(x", ");\r\n"));
}

TEST(PreTokenizer, Qwen2CutsEveryDigit) {
  EXPECT_THAT(Split("qwen2", "v1.25 abc"), ElementsAre("v", "1", ".", "2", "5", " abc"));
}

TEST(PreTokenizer, Qwen35KeepsMarksWithTheirLetters) {
  EXPECT_THAT(Split("qwen2", "ne\u0301e"), ElementsAre("ne", "\u0301e"));
  EXPECT_THAT(Split("qwen35", "ne\u0301e"), ElementsAre("ne\u0301e"));
}

TEST(PreTokenizer, Gpt4oCutsWhereCaseRises) {
  EXPECT_THAT(Split("gpt-4o", "camelCase HTTPServer it's 1234/\n"),
              ElementsAre("camel", "Case", " HTTPServer", " it's", " ", "123", "4", "/\n"));
  EXPECT_THAT(Split("tekken", "camelCase it's 12"), ElementsAre("camel", "Case", " it", "'s", " ", "1", "2"));
}

TEST(PreTokenizer, KimiK2KeepsChineseApart) {
  EXPECT_THAT(Split("kimi-k2", "abc中文Def 1234"), ElementsAre("abc", "中文", "Def", " ", "123", "4"));
  EXPECT_THAT(Split("kimi-k2", "カタcana"), ElementsAre("カタcana"));
}

TEST(PreTokenizer, DeepSeek) {
  EXPECT_THAT(Split("deepseek-v3", "中文かな!abc 1234"), ElementsAre("中文かな", "!abc", " ", "123", "4"));
  EXPECT_THAT(Split("deepseek-llm", "Hello 12345 中文\n  "),
              ElementsAre("Hello", " ", "12345", " ", "中文", "\n", "  "));
  EXPECT_THAT(Split("deepseek-coder", "x = 12"), ElementsAre("x", " = ", "1", "2"));
}

TEST(PreTokenizer, FalconAndTheDefault) {
  EXPECT_THAT(Split("falcon", "a+b 12345"), ElementsAre("a", "+", "b", " ", "123", "45"));
  EXPECT_THAT(Split("default", "They're 1234567 d'été"),
              ElementsAre("They", "'", "re", " ", "123", "456", "7", " d", "'", "été"));
}

TEST(PreTokenizer, SingleDigitsFirst) {
  EXPECT_THAT(Split("starcoder", "x 12 y"), ElementsAre("x", " ", "1", "2", " y"));
  EXPECT_THAT(Split("command-r", "½12"), ElementsAre("½", "1", "2"));
}

TEST(PreTokenizer, BloomAndViking) {
  EXPECT_THAT(Split("bloom", "Hi there, 12!"), ElementsAre("Hi", " there", ",", " 12", "!"));
  EXPECT_THAT(Split("viking", "a12"), ElementsAre("a", "1", "2"));
}

TEST(PreTokenizer, Gemma4CutsAtLineEndsOnly) {
  EXPECT_THAT(Split("gemma4", "a b\n\nc"), ElementsAre("a b", "\n\n", "c"));
}

TEST(PreTokenizer, DigitsInThreesFromTheRight) {
  EXPECT_THAT(Split("superbpe", "1234567 x"), ElementsAre("1", "234", "567", " x"));
  EXPECT_THAT(Split("superbpe", "123456"), ElementsAre("123", "456"));
  EXPECT_THAT(Split("afmoe", "12345"), ElementsAre("12", "345"));
  EXPECT_THAT(Split("tiny_aya", "1234567"), ElementsAre("1", "234", "567"));
  // In front of letters the first pattern fails, and the second cuts from the left.
  EXPECT_THAT(Split("tiny_aya", "1234th"), ElementsAre("123", "4", "th"));
}

TEST(PreTokenizer, ExaoneMoeLetsSpacesInside) {
  EXPECT_THAT(Split("exaone-moe", "one two 12"), ElementsAre("one two", " ", "1", "2"));
}

TEST(PreTokenizer, BytesThatAreNoTextStandAlone) {
  EXPECT_THAT(Split("llama-bpe", "ab\xFF\xE2\x82 cd"), ElementsAre("ab", "\xFF", "\xE2\x82", " cd"));
  EXPECT_THAT(Split("llama-bpe", std::string_view("a\0b", 3)), ElementsAre("a", std::string("\0b", 2)));
}

// Every byte in exactly one piece, borders between characters, whatever the text.
TEST(PreTokenizer, PiecesCoverAnyText) {
  std::mt19937 random(9);
  const std::string_view parts[] = {" ",        "  ",     "\n",   "\r\n",    "\t", "a",       "Zz",
                                    "'s",       "'",      "12",   "1234567", "é",  "e\u0301", "中",
                                    "か",       "한",     "🦙", "!",       "/",  ".",       "\xFF",
                                    "\xE2\x82", "\u00A0", "ǅ",    "٣",       "½",  "_",       "$"};
  for (const PreTokenizerSpec& spec : PreTokenizers()) {
    const PreTokenizer pre_tokenizer(spec);
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (size_t n = random() % 12; n > 0; --n) text += parts[random() % std::size(parts)];
      std::vector<uint32_t> ends;
      ASSERT_TRUE(pre_tokenizer.Split(text, &ends).has_value());
      uint32_t begin = 0;
      for (const uint32_t end : ends) {
        ASSERT_LT(begin, end);
        const std::string_view piece = std::string_view(text).substr(begin, end - begin);
        ASSERT_TRUE(IsValidUtf8(piece) || DecodeUtf8(piece).size == piece.size())
            << spec.names[0] << ": " << text;
        begin = end;
      }
      ASSERT_EQ(begin, text.size()) << spec.names[0];
    }
  }
}

// Long runs of what the patterns repeat, followed by what makes them fail: quadratic patterns would take
// hours here, and recursive ones run out of stack.
TEST(PreTokenizer, LongRunsAreSplitInLinearTime) {
  std::vector<std::string> texts;
  for (const std::string_view unit : {" ", "\n", "a", "A", "1", "'", "!", "中", "\u0301", "ǅ", " \n", " a",
                                      "a\u0301", "\xFF", "a\xFF", "Aa", "\r"}) {
    std::string text;
    while (text.size() < 60'000) text += unit;
    texts.push_back(text);
    texts.push_back(text + "x");
    texts.push_back(text + " 1");
  }
  for (const PreTokenizerSpec& spec : PreTokenizers()) {
    const PreTokenizer pre_tokenizer(spec);
    for (const std::string& text : texts) {
      std::vector<uint32_t> ends;
      const Status status = pre_tokenizer.Split(text, &ends);
      ASSERT_TRUE(status.has_value())
          << spec.names[0] << ": " << text.substr(0, 4) << ": " << status.error().message;
      ASSERT_EQ(ends.back(), text.size());
    }
  }
}

}  // namespace
}  // namespace sluice::text
