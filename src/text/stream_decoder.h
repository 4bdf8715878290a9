// StreamDecoder: generated tokens, one at a time, to text that is valid UTF-8 at every moment. A character
// whose bytes are spread over several tokens appears when its last byte is there. All output together equals
// Tokenizer::DecodeText of the same ids (with strip_leading_space, minus that space).
//
// Holds a reference to the tokenizer, which must outlive it. One thread at a time.
#pragma once

#include <string>

#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sluice::text {

struct StreamOptions {
  bool render_special = false;  // print control tokens by their text
  // Drop one space at the very beginning: for answers of models whose tokens carry the space before a word.
  bool strip_leading_space = false;
};

class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, StreamOptions options = {});

  // Appends to *out the text that `id` completes; possibly nothing.
  void Push(TokenId id, std::string* out);

  // The end: an incomplete character becomes one U+FFFD.
  void Finish(std::string* out);

  bool holds_back() const { return stream_.pending() > 0; }

 private:
  const Tokenizer& tokenizer_;
  StreamOptions options_;
  bool at_start_ = true;
  std::string piece_;
  Utf8Stream stream_;
};

}  // namespace sluice::text
