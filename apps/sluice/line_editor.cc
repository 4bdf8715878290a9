#include "line_editor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "glyphs.h"

namespace sluice::app {

namespace {

constexpr size_t kShownRows = 10;

struct Layout {
  std::vector<std::string> rows;
  size_t cursor_row = 0;
  int cursor_column = 0;
};

// Breaks the text into rows. The last column stays free: what a terminal does after a character there differs.
Layout LayOut(const std::string& prompt, const std::string& text, size_t cursor, int columns) {
  const int indent = Columns(prompt);
  const int end_column = std::max(columns - 1, indent + 4);
  Layout layout{.rows = {prompt}};
  int column = indent;
  const auto new_row = [&] {
    layout.rows.emplace_back(static_cast<size_t>(indent), ' ');
    column = indent;
  };
  for (size_t at = 0; at <= text.size();) {
    Glyph glyph;
    size_t next = text.size() + 1;
    if (at < text.size() && text[at] != '\n') {
      next = NextCharacter(text, at);
      glyph = Show(std::string_view(text).substr(at, next - at));
      if (column + glyph.columns > end_column) new_row();
    }
    if (at == cursor) {
      layout.cursor_row = layout.rows.size() - 1;
      layout.cursor_column = column;
    }
    if (at < text.size() && text[at] == '\n') {
      next = at + 1;
      new_row();
    }
    layout.rows.back() += glyph.text;
    column += glyph.columns;
    at = next;
  }
  return layout;
}

}  // namespace

void LineEditor::Enter(Outcome* outcome) {
  if (!buffer_.text().ends_with('\\')) {
    *outcome = Outcome::kDone;
    return;
  }
  std::string text = buffer_.text();
  text.back() = '\n';
  buffer_.Set(std::move(text));
}

void LineEditor::Recall(size_t index) {
  if (history_at_ == history_.size()) draft_ = buffer_.text();
  history_at_ = index;
  buffer_.Set(index == history_.size() ? draft_ : history_[index]);
}

LineEditor::Outcome LineEditor::Press(const Key& key) {
  Outcome outcome = Outcome::kEditing;
  switch (key.kind) {
    case Key::Kind::kText:
    case Key::Kind::kPaste: buffer_.Insert(key.text); break;
    case Key::Kind::kEnter: Enter(&outcome); break;
    case Key::Kind::kNewLine: buffer_.Insert("\n"); break;
    case Key::Kind::kBackspace: buffer_.Backspace(); break;
    case Key::Kind::kDelete: buffer_.Delete(); break;
    case Key::Kind::kLeft: buffer_.Left(); break;
    case Key::Kind::kRight: buffer_.Right(); break;
    case Key::Kind::kUp:
      if (!buffer_.LineUp() && history_at_ > 0) Recall(history_at_ - 1);
      break;
    case Key::Kind::kDown:
      if (!buffer_.LineDown() && history_at_ < history_.size()) Recall(history_at_ + 1);
      break;
    case Key::Kind::kHome: buffer_.LineStart(); break;
    case Key::Kind::kEnd: buffer_.LineEnd(); break;
    case Key::Kind::kWordLeft: buffer_.WordLeft(); break;
    case Key::Kind::kWordRight: buffer_.WordRight(); break;
    case Key::Kind::kKillToEnd: buffer_.KillToLineEnd(); break;
    case Key::Kind::kKillToStart: buffer_.KillToLineStart(); break;
    case Key::Kind::kKillWordLeft: buffer_.KillWordLeft(); break;
    case Key::Kind::kKillWordRight: buffer_.KillWordRight(); break;
    case Key::Kind::kYank: buffer_.Yank(); break;
    case Key::Kind::kClearScreen: clear_screen_ = true; break;
    case Key::Kind::kInterrupt:
      if (text().empty()) return Outcome::kInterrupted;
      buffer_.Set({});
      history_at_ = history_.size();
      break;
    case Key::Kind::kEndOfInput:
      if (text().empty()) return Outcome::kEndOfInput;
      buffer_.Delete();
      break;
  }
  return outcome;
}

std::string LineEditor::Draw(int columns) {
  const Layout layout = LayOut(prompt_, buffer_.text(), buffer_.cursor(), columns);
  size_t first = 0;
  if (layout.rows.size() > kShownRows) {
    first = std::min(layout.cursor_row - std::min(layout.cursor_row, kShownRows / 2), layout.rows.size() - kShownRows);
  }
  const size_t shown = std::min(layout.rows.size(), kShownRows);

  std::string out;
  if (std::exchange(clear_screen_, false)) {
    out += "\033[H\033[2J";
  } else if (cursor_row_ > 0) {
    out += fmt::format("\033[{}A", cursor_row_);
  }
  out += "\r\033[J";
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) out += "\r\n";
    out += layout.rows[first + i];
  }
  drawn_rows_ = shown;
  cursor_row_ = layout.cursor_row - first;
  if (const size_t up = shown - 1 - cursor_row_; up > 0) out += fmt::format("\033[{}A", up);
  out += '\r';
  if (layout.cursor_column > 0) out += fmt::format("\033[{}C", layout.cursor_column);
  return out;
}

std::string LineEditor::Leave() {
  std::string out;
  if (const size_t down = drawn_rows_ - 1 - cursor_row_; down > 0) out += fmt::format("\033[{}B", down);
  return out + "\r\n";
}

}  // namespace sluice::app
