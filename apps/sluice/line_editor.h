// LineEditor: one message being typed: keys in, and the bytes that bring the terminal up to date out.
//
// Does no input or output of its own, so that it can be tested without a terminal. A text may have several lines: a
// backslash before Enter, Alt-Enter and pasted line feeds continue it. One thread; `history` outlives the editor.
#pragma once

#include <string>
#include <vector>

#include "edit_buffer.h"
#include "keys.h"

namespace sluice::app {

class LineEditor {
 public:
  enum class Outcome {
    kEditing,
    kDone,         // Enter
    kInterrupted,  // Ctrl-C, with nothing typed; otherwise that only empties the text
    kEndOfInput,   // Ctrl-D, with nothing typed
  };

  LineEditor(std::string prompt, const std::vector<std::string>& history)
      : prompt_(std::move(prompt)), history_(history), history_at_(history.size()) {}

  Outcome Press(const Key& key);
  const std::string& text() const { return buffer_.text(); }

  // Redraws in place, for a terminal this wide. Of a long text the lines around the cursor are shown.
  std::string Draw(int columns);
  // Puts the cursor on a line of its own below what was drawn.
  std::string Leave();

 private:
  void Enter(Outcome* outcome);
  void Recall(size_t index);

  std::string prompt_;
  const std::vector<std::string>& history_;
  size_t history_at_;  // history_.size(): the text that is being typed
  std::string draft_;  // that text while an older one is shown
  EditBuffer buffer_;
  bool clear_screen_ = false;
  size_t drawn_rows_ = 1;
  size_t cursor_row_ = 0;  // among the drawn ones
};

}  // namespace sluice::app
