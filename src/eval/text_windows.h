// TextWindows: the tokens of a text as a model is measured on them: cut into windows, each read on its own,
// and of each the later positions scored, so that all of those have a past. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace sluice::eval {

struct TextWindows {
  std::vector<text::TokenId> ids;  // window after window, as they are read
  int64_t window = 0;              // tokens of each
  int64_t first_scored = 0;        // the position in each window from which on predictions are looked at

  int64_t count() const { return static_cast<int64_t>(ids.size()) / window; }
  std::span<const text::TokenId> Window(int64_t index) const {
    return std::span(ids).subspan(static_cast<size_t>(index * window), static_cast<size_t>(window));
  }
  // The last position of a window predicts a token that is not there.
  int64_t scored_in_window() const { return window - 1 - first_scored; }
  int64_t scored() const { return count() * scored_in_window(); }
  bool Scores(int64_t position) const { return position >= first_scored && position + 1 < window; }
  // The token that comes next where prediction `index` of scored() was made, counted over all windows.
  text::TokenId Target(int64_t index) const {
    const int64_t position = first_scored + index % scored_in_window();
    return Window(index / scored_in_window())[static_cast<size_t>(position + 1)];
  }

  bool operator==(const TextWindows&) const = default;
};

struct WindowOptions {
  int64_t context = 0;               // most tokens of a window; ≥ 2
  bool whole = false;                // one window, however long the text: the model goes on past its context
  std::optional<text::TokenId> bos;  // replaces the first token of each window
  int64_t most = 0;                  // windows at most; 0: all
};

// Windows of the context's length; what is left at the end of the text is not read. The second half of each
// is scored, as other programs do it, so that figures compare; a text shorter than one window is scored
// whole. With `whole`, positions from half a context on. Errors: kInvalidArgument for fewer than two tokens.
Result<TextWindows> CutWindows(std::span<const text::TokenId> ids, const WindowOptions& options);

}  // namespace sluice::eval
