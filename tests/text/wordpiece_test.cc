#include "text/wordpiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/small_vocabulary.h"

namespace sluice::text {
namespace {

using ::testing::ElementsAre;

SmallVocabulary Small() {
  SmallVocabulary small("bert");
  small.source.bos = small.Add("[CLS]", TokenKind::kControl);
  small.source.separator = small.Add("[SEP]", TokenKind::kControl);
  small.source.unknown = small.Add("[UNK]", TokenKind::kControl);
  for (const std::string_view text : {"▁play", "ing", "▁cafe", "▁,", "▁中", "▁文", "▁Play", "▁café"})
    small.Add(text);
  return small;
}

TEST(WordPiece, LowersStripsAndCutsWords) {
  const Tokenizer t = Small().Make();
  EXPECT_THAT(Pieces(t, "Playing  CAFÉ,中文"), ElementsAre("▁play", "ing", "▁cafe", "▁,", "▁中", "▁文"));
  EXPECT_THAT(Pieces(t, "playful play"), ElementsAre("[UNK]", "▁play"));
  EXPECT_THAT(Pieces(t, "play", {.add_special = true}), ElementsAre("[CLS]", "▁play", "[SEP]"));
}

TEST(WordPiece, KeepsCaseWhereTheModelDoes) {
  SmallVocabulary small = Small();
  small.source.lowercase = false;
  EXPECT_THAT(Pieces(small.Make(), "Playing café"), ElementsAre("▁Play", "ing", "▁café"));
}

TEST(WordPiece, ControlCharactersAndBadBytesVanishButNothingBreaks) {
  const Tokenizer t = Small().Make();
  EXPECT_THAT(Pieces(t, std::string_view("pl\0ay\xFF \x01ing", 12)), ElementsAre("▁play", "[UNK]"));
  EXPECT_THAT(Pieces(t, ""), ElementsAre());
}

}  // namespace
}  // namespace sluice::text
