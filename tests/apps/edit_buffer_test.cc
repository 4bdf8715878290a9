#include "sluice/edit_buffer.h"

#include <gtest/gtest.h>

namespace sluice::app {
namespace {

// The text with "|" where the cursor is.
std::string Show(const EditBuffer& buffer) {
  std::string text = buffer.text();
  return text.insert(buffer.cursor(), "|");
}

EditBuffer With(const std::string& text) {
  EditBuffer buffer;
  buffer.Set(text);
  return buffer;
}

TEST(EditBufferTest, InsertsWhereTheCursorIs) {
  EditBuffer buffer = With("ac");
  buffer.Left();
  buffer.Insert("b");
  EXPECT_EQ(Show(buffer), "ab|c");
}

TEST(EditBufferTest, MovesAndDeletesWholeCharacters) {
  EditBuffer buffer = With("xe\u0301日");
  buffer.Left();
  EXPECT_EQ(Show(buffer), "xe\u0301|日");
  buffer.Backspace();
  EXPECT_EQ(Show(buffer), "x|日");
  buffer.Delete();
  EXPECT_EQ(Show(buffer), "x|");
  buffer.Delete();
  buffer.Right();
  EXPECT_EQ(Show(buffer), "x|");
  buffer.Left();
  buffer.Left();
  buffer.Backspace();
  EXPECT_EQ(Show(buffer), "|x");
}

TEST(EditBufferTest, Words) {
  EditBuffer buffer = With("one two-drei, vier");
  buffer.WordLeft();
  EXPECT_EQ(Show(buffer), "one two-drei, |vier");
  buffer.WordLeft();
  EXPECT_EQ(Show(buffer), "one two-|drei, vier");
  buffer.WordRight();
  EXPECT_EQ(Show(buffer), "one two-drei|, vier");
  buffer.KillWordLeft();
  EXPECT_EQ(Show(buffer), "one |, vier");
  buffer.Yank();
  EXPECT_EQ(Show(buffer), "one two-drei|, vier");
  buffer.KillWordRight();
  EXPECT_EQ(Show(buffer), "one two-drei|");
}

TEST(EditBufferTest, KillsStayInTheirLine) {
  EditBuffer buffer = With("one\ntwo\nthree");
  ASSERT_TRUE(buffer.LineUp());
  EXPECT_EQ(Show(buffer), "one\ntwo|\nthree");
  buffer.KillToLineStart();
  EXPECT_EQ(Show(buffer), "one\n|\nthree");
  buffer.KillToLineEnd();
  EXPECT_EQ(Show(buffer), "one\n|three");
  buffer.LineEnd();
  EXPECT_EQ(Show(buffer), "one\nthree|");
  buffer.LineStart();
  EXPECT_EQ(Show(buffer), "one\n|three");
}

TEST(EditBufferTest, LinesKeepTheColumn) {
  EditBuffer buffer = With("日本語\nab\nabcdef");
  buffer.Left();
  buffer.Left();
  EXPECT_EQ(Show(buffer), "日本語\nab\nabcd|ef");
  ASSERT_TRUE(buffer.LineUp());
  EXPECT_EQ(Show(buffer), "日本語\nab|\nabcdef");
  ASSERT_TRUE(buffer.LineUp());
  EXPECT_EQ(Show(buffer), "日|本語\nab\nabcdef");  // two columns wide
  EXPECT_FALSE(buffer.LineUp());
  ASSERT_TRUE(buffer.LineDown());
  EXPECT_EQ(Show(buffer), "日本語\nab|\nabcdef");
  ASSERT_TRUE(buffer.LineDown());
  EXPECT_FALSE(buffer.LineDown());
}

}  // namespace
}  // namespace sluice::app
