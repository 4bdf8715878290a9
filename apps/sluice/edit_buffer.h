// EditBuffer: a text being typed, and where the cursor stands in it. Moves by characters as people see them, by words
// and by lines. One thread.
#pragma once

#include <string>
#include <string_view>

namespace sluice::app {

class EditBuffer {
 public:
  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }  // a byte offset, between two characters

  void Set(std::string text);  // the cursor goes to the end
  void Insert(std::string_view text);

  void Left();
  void Right();
  void WordLeft();
  void WordRight();
  void LineStart();
  void LineEnd();
  // False when there is no line above (below) to go to.
  bool LineUp();
  bool LineDown();

  void Backspace();
  void Delete();
  // What these remove, Yank inserts again.
  void KillToLineEnd();  // at the end of a line: its line feed
  void KillToLineStart();
  void KillWordLeft();   // back to white space
  void KillWordRight();
  void Yank() { Insert(std::string(killed_)); }

 private:
  size_t WordStart() const;
  size_t WordEnd() const;
  size_t StartOfLine(size_t at) const;
  size_t EndOfLine(size_t at) const;
  // The offset in the line that begins at `line` which stands below or above the cursor.
  size_t SameColumn(size_t line) const;
  void Kill(size_t begin, size_t end);

  std::string text_;
  std::string killed_;
  size_t cursor_ = 0;
};

}  // namespace sluice::app
