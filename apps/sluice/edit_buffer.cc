#include "edit_buffer.h"

#include "glyphs.h"

namespace sluice::app {

namespace {

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\t'; }

// Letters and digits; all that is not ASCII counts as letters.
bool IsWord(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

void EditBuffer::Set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
}

void EditBuffer::Insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void EditBuffer::Left() {
  if (cursor_ > 0) cursor_ = PreviousCharacter(text_, cursor_);
}

void EditBuffer::Right() {
  if (cursor_ < text_.size()) cursor_ = NextCharacter(text_, cursor_);
}

size_t EditBuffer::WordStart() const {
  size_t at = cursor_;
  while (at > 0 && !IsWord(text_[at - 1])) --at;
  while (at > 0 && IsWord(text_[at - 1])) --at;
  return at;
}

size_t EditBuffer::WordEnd() const {
  size_t at = cursor_;
  while (at < text_.size() && !IsWord(text_[at])) ++at;
  while (at < text_.size() && IsWord(text_[at])) ++at;
  return at;
}

void EditBuffer::WordLeft() { cursor_ = WordStart(); }
void EditBuffer::WordRight() { cursor_ = WordEnd(); }

size_t EditBuffer::StartOfLine(size_t at) const {
  while (at > 0 && text_[at - 1] != '\n') --at;
  return at;
}

size_t EditBuffer::EndOfLine(size_t at) const {
  while (at < text_.size() && text_[at] != '\n') ++at;
  return at;
}

void EditBuffer::LineStart() { cursor_ = StartOfLine(cursor_); }
void EditBuffer::LineEnd() { cursor_ = EndOfLine(cursor_); }

size_t EditBuffer::SameColumn(size_t line) const {
  const size_t start = StartOfLine(cursor_);
  const int wanted = Columns(std::string_view(text_).substr(start, cursor_ - start));
  const size_t end = EndOfLine(line);
  size_t at = line;
  for (int columns = 0; at < end;) {
    const size_t next = NextCharacter(text_, at);
    columns += Show(std::string_view(text_).substr(at, next - at)).columns;
    if (columns > wanted) break;
    at = next;
  }
  return at;
}

bool EditBuffer::LineUp() {
  const size_t start = StartOfLine(cursor_);
  if (start == 0) return false;
  cursor_ = SameColumn(StartOfLine(start - 1));
  return true;
}

bool EditBuffer::LineDown() {
  const size_t end = EndOfLine(cursor_);
  if (end == text_.size()) return false;
  cursor_ = SameColumn(end + 1);
  return true;
}

void EditBuffer::Backspace() {
  const size_t end = cursor_;
  Left();
  text_.erase(cursor_, end - cursor_);
}

void EditBuffer::Delete() {
  if (cursor_ < text_.size()) text_.erase(cursor_, NextCharacter(text_, cursor_) - cursor_);
}

void EditBuffer::Kill(size_t begin, size_t end) {
  if (begin == end) return;
  killed_ = text_.substr(begin, end - begin);
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

void EditBuffer::KillToLineEnd() {
  const size_t end = EndOfLine(cursor_);
  Kill(cursor_, end == cursor_ && end < text_.size() ? end + 1 : end);
}

void EditBuffer::KillToLineStart() { Kill(StartOfLine(cursor_), cursor_); }

void EditBuffer::KillWordLeft() {
  size_t begin = cursor_;
  while (begin > 0 && IsSpace(text_[begin - 1])) --begin;
  while (begin > 0 && !IsSpace(text_[begin - 1])) --begin;
  Kill(begin, cursor_);
}

void EditBuffer::KillWordRight() { Kill(cursor_, WordEnd()); }

}  // namespace sluice::app
