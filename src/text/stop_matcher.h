// StopMatcher: ends a stream of text at the first stop string, wherever token borders fall. Text that may be
// the beginning of a stop string is held back until that is decided; nothing is lost and nothing is shown
// twice.
//
// The stop string that is complete first wins; of several that end at the same byte, the longest. So the
// result doesn't depend on how the text was cut. A value; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::text {

class StopMatcher {
 public:
  // Empty stop strings are ignored. Indices below refer to `stops` as given.
  explicit StopMatcher(std::vector<std::string> stops);

  // Takes more text and appends to *out what may be shown. True once a stop string was found: *out then ends
  // before it, and all further text is swallowed.
  bool Push(std::string_view text, std::string* out);

  // The text ends without a stop string: what was held back is shown after all.
  void Finish(std::string* out);

  // Which stop string ended the text.
  std::optional<size_t> matched() const { return matched_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<uint32_t> border;  // Knuth-Morris-Pratt: the longest proper border of each prefix
    size_t index;                  // in the list as given
    size_t matched = 0;            // how many bytes of `text` the stream ends with
  };
  std::vector<Pattern> patterns_;
  std::string held_;
  std::optional<size_t> matched_;
};

}  // namespace sluice::text
