#include "text/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::text {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

TEST(Utf8, EveryScalarValueComesBack) {
  for (uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point < 0xE000) continue;
    std::string text;
    AppendUtf8(code_point, &text);
    const Utf8Step step = DecodeUtf8(text);
    ASSERT_EQ(step.status, Utf8Status::kValid);
    ASSERT_EQ(step.code_point, code_point);
    ASSERT_EQ(step.size, text.size());
    // Every proper beginning can still become valid, and nothing else.
    for (size_t size = 1; size < text.size(); ++size) {
      const Utf8Step cut = DecodeUtf8(std::string_view(text).substr(0, size));
      ASSERT_EQ(cut.status, Utf8Status::kIncomplete);
      ASSERT_EQ(cut.size, size);
    }
  }
}

TEST(Utf8, MalformedBytesAreNamedAsSuch) {
  const auto invalid = [](std::string_view bytes, uint32_t size) {
    const Utf8Step step = DecodeUtf8(bytes);
    EXPECT_EQ(step.status, Utf8Status::kInvalid);
    EXPECT_EQ(step.code_point, kReplacementCharacter);
    EXPECT_EQ(step.size, size);
  };
  invalid("\x80", 1);      // a continuation on its own
  invalid("\xC0\x80", 1);  // overlong NUL
  invalid("\xC1\xBF", 1);
  invalid("\xE0\x9F\xBF", 1);      // overlong
  invalid("\xED\xA0\x80", 1);      // a surrogate
  invalid("\xF0\x8F\xBF\xBF", 1);  // overlong
  invalid("\xF4\x90\x80\x80", 1);  // above U+10FFFF
  invalid("\xF5\x80\x80\x80", 1);
  invalid("\xFF", 1);
  invalid("\xE2\x82x", 2);  // the maximal subpart is one unit
  invalid("\xF0\x9F\x98x", 3);
}

TEST(Utf8, ReplacesEachMaximalSubpartOnce) {
  const std::string r = kReplacement;
  EXPECT_EQ(ToValidUtf8(""), "");
  EXPECT_EQ(ToValidUtf8("a\xFFz"), "a" + r + "z");
  EXPECT_EQ(ToValidUtf8("\xE2\x82"), r);
  EXPECT_EQ(ToValidUtf8("\xE2\x82\xE2\x82\xAC"), r + "\xE2\x82\xAC");
  EXPECT_EQ(ToValidUtf8("\xF0\x9F\x98\xF0\x9F"), r + r);
  EXPECT_EQ(ToValidUtf8(std::string("a\0b", 3)), std::string("a\0b", 3));
  // The example of the Unicode standard, table 3-8.
  EXPECT_EQ(ToValidUtf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a" + r + r + r + "b" + r + "c" + r + r + "d");
}

TEST(Utf8Stream, OutputDoesNotDependOnTheCuts) {
  std::mt19937 random(1);
  const std::string_view parts[] = {"a",    "\xC3\xA9", "\xE4\xB8\xAD", "\xF0\x9F\xA6\x99",
                                    "\xFF", "\xE2\x82", "\xF0\x9F",     "\x80"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 6; ++i) text += parts[random() % std::size(parts)];
    Utf8Stream stream;
    std::string out;
    for (std::string_view rest = text; !rest.empty();) {
      const size_t size = 1 + random() % rest.size();
      stream.Append(rest.substr(0, size), &out);
      ASSERT_TRUE(IsValidUtf8(out));
      ASSERT_LE(stream.pending(), 3u);
      rest.remove_prefix(size);
    }
    stream.Finish(&out);
    ASSERT_EQ(out, ToValidUtf8(text));
    ASSERT_EQ(stream.pending(), 0u);
  }
}

TEST(Utf8, CountsTheValidPrefix) {
  EXPECT_EQ(ValidUtf8Prefix(""), 0u);
  EXPECT_EQ(ValidUtf8Prefix("ab\xC3\xA9\xFFq"), 4u);
  EXPECT_TRUE(IsValidUtf8("ab\xC3\xA9"));
  EXPECT_FALSE(IsValidUtf8("ab\xC3"));
}

}  // namespace
}  // namespace sluice::text
