#include "sluice/glyphs.h"

#include <gmock/gmock.h>

namespace sluice::app {
namespace {

TEST(GlyphsTest, Columns) {
  EXPECT_EQ(Columns("abc"), 3);
  EXPECT_EQ(Columns("äöü"), 3);
  EXPECT_EQ(Columns("日本"), 4);
  EXPECT_EQ(Columns("e\u0301"), 1);                          // e with a combining accent
  EXPECT_EQ(Columns("👩\u200d👩\u200d👧"), 2);               // a family, joined
  EXPECT_EQ(Columns("🇩🇪"), 2);                              // a flag
  EXPECT_EQ(Columns("\t"), 4);
  EXPECT_EQ(Columns("\x1b"), 2);                             // ^[
  EXPECT_EQ(Columns("a\xff"), 2);
}

TEST(GlyphsTest, StepsOverWholeCharacters) {
  const std::string text = "ae\u0301日👩\u200d👧\xff\xffz";
  std::vector<size_t> forward{0}, backward{text.size()};
  while (forward.back() < text.size()) forward.push_back(NextCharacter(text, forward.back()));
  while (backward.back() > 0) backward.push_back(PreviousCharacter(text, backward.back()));
  std::ranges::reverse(backward);
  EXPECT_EQ(forward, backward);
  EXPECT_EQ(forward.size(), 8u);  // a é 日 family ? ? z, and the end
}

TEST(GlyphsTest, ManyStrayContinuationBytesDontStopTheCursor) {
  const std::string text(1000, '\x80');
  size_t steps = 0;
  for (size_t at = text.size(); at > 0; ++steps) at = PreviousCharacter(text, at);
  EXPECT_EQ(steps, 1000u);
}

TEST(GlyphsTest, PrintableKeepsTextAndTakesOutControls) {
  EXPECT_EQ(Printable("Grüße, 日本 👍\n\tx"), "Grüße, 日本 👍\n\tx");
  EXPECT_EQ(Printable("\x1b[2J\x1b]52;c;YQ==\x07"), "\uFFFD[2J\uFFFD]52;c;YQ==\uFFFD");
  EXPECT_EQ(Printable("a\r\nb\rc"), "a\nb\uFFFDc");
  EXPECT_EQ(Printable("\u009b31m"), "\uFFFD31m");  // CSI as one C1 character
  EXPECT_EQ(Printable("\x9b" "31m"), "\uFFFD31m");  // and as a bare byte
  EXPECT_EQ(Printable(std::string_view("\0\x7f", 2)), "\uFFFD\uFFFD");
}

}  // namespace
}  // namespace sluice::app
