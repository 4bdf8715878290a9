#include "sluice/line_editor.h"

#include <gmock/gmock.h>

#include "apps/screen.h"

namespace sluice::app {
namespace {

using ::testing::ElementsAre;
using Outcome = LineEditor::Outcome;

class LineEditorTest : public ::testing::Test {
 protected:
  // Feeds bytes as a terminal sends them, and draws after each key.
  Outcome Type(std::string_view bytes) {
    Outcome outcome = Outcome::kEditing;
    for (const char byte : bytes) {
      if (const auto key = keys_.Push(byte)) outcome = editor_.Press(*key);
      screen_.Write(editor_.Draw(columns_));
    }
    return outcome;
  }

  std::vector<std::string> history_{"first", "second"};
  LineEditor editor_{"> ", history_};
  KeyDecoder keys_;
  testing::Screen screen_;
  int columns_ = 20;
};

TEST_F(LineEditorTest, TypesAndEdits) {
  EXPECT_EQ(Type("helo\033[Dl"), Outcome::kEditing);
  EXPECT_EQ(editor_.text(), "hello");
  EXPECT_THAT(screen_.rows(), ElementsAre("> hello"));
  EXPECT_EQ(screen_.column(), 6u);  // before the o
  EXPECT_EQ(Type("\r"), Outcome::kDone);
  screen_.Write(editor_.Leave());
  EXPECT_EQ(screen_.row(), 1u);
  EXPECT_EQ(screen_.column(), 0u);
}

TEST_F(LineEditorTest, WideCharactersMoveTheCursorByTwo) {
  Type("日本\033[D");
  EXPECT_THAT(screen_.rows(), ElementsAre("> 日本"));
  EXPECT_EQ(screen_.column(), 4u);
}

TEST_F(LineEditorTest, LongLinesWrapBeforeTheLastColumn) {
  Type("abcdefghijklmnopqrstuvwxyz");
  EXPECT_THAT(screen_.rows(), ElementsAre("> abcdefghijklmnopq", "  rstuvwxyz"));
  Type("\001X");
  EXPECT_THAT(screen_.rows(), ElementsAre("> Xabcdefghijklmnop", "  qrstuvwxyz"));
  EXPECT_EQ(screen_.row(), 0u);
  EXPECT_EQ(screen_.column(), 3u);
  Type("\013");
  EXPECT_THAT(screen_.rows(), ElementsAre("> X"));
  screen_.Write(editor_.Leave());
  EXPECT_EQ(screen_.row(), 1u);
}

TEST_F(LineEditorTest, AWideCharacterIsNotCutByTheEdge) {
  columns_ = 8;  // five columns of text
  Type("abcd日x");
  EXPECT_THAT(screen_.rows(), ElementsAre("> abcd", "  日x"));
}

TEST_F(LineEditorTest, BackslashContinues) {
  EXPECT_EQ(Type("one\\\rtwo\033\rthree"), Outcome::kEditing);
  EXPECT_EQ(editor_.text(), "one\ntwo\nthree");
  EXPECT_THAT(screen_.rows(), ElementsAre("> one", "  two", "  three"));
  EXPECT_EQ(Type("\r"), Outcome::kDone);
}

TEST_F(LineEditorTest, PasteIsOneTextAndNotSent) {
  EXPECT_EQ(Type("\033[200~a\rb\033[201~"), Outcome::kEditing);
  EXPECT_EQ(editor_.text(), "a\nb");
}

TEST_F(LineEditorTest, PastedControlCharactersReachTheScreenMadeVisible) {
  Type("\033[200~\033[2J\033[201~");
  EXPECT_THAT(screen_.rows(), ElementsAre("> ^[[2J"));
}

TEST_F(LineEditorTest, HistoryKeepsTheDraft) {
  Type("draft\033[A");
  EXPECT_EQ(editor_.text(), "second");
  Type("\033[A\033[A");
  EXPECT_EQ(editor_.text(), "first");
  Type("\033[B\033[B");
  EXPECT_EQ(editor_.text(), "draft");
  Type("\033[B");
  EXPECT_EQ(editor_.text(), "draft");
}

TEST_F(LineEditorTest, InterruptEmptiesThenLeaves) {
  EXPECT_EQ(Type("text\003"), Outcome::kEditing);
  EXPECT_EQ(editor_.text(), "");
  EXPECT_THAT(screen_.rows(), ElementsAre(">"));
  EXPECT_EQ(Type("\003"), Outcome::kInterrupted);
}

TEST_F(LineEditorTest, EndOfInputDeletesOrLeaves) {
  EXPECT_EQ(Type("ab\001\004"), Outcome::kEditing);
  EXPECT_EQ(editor_.text(), "b");
  EXPECT_EQ(Type("\004\004"), Outcome::kEndOfInput);
}

TEST_F(LineEditorTest, OfATallTextTheRowsAroundTheCursorAreShown) {
  for (int i = 0; i < 30; ++i) Type("line" + std::to_string(i) + "\\\r");
  const auto rows = screen_.rows();
  EXPECT_EQ(rows.size(), 10u);
  EXPECT_EQ(rows[8], "  line29");
  for (int i = 0; i < 30; ++i) Type("\033[A");
  EXPECT_EQ(screen_.rows()[0], "> line0");
  EXPECT_EQ(screen_.row(), 0u);
}

TEST_F(LineEditorTest, NarrowTerminalsDontBreakIt) {
  for (const int columns : {0, 1, 3}) {
    columns_ = columns;
    Type("日x");
    EXPECT_FALSE(screen_.rows().empty());
  }
}

}  // namespace
}  // namespace sluice::app
