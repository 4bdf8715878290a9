// UTF-8, strictly: shortest forms only, no surrogates, nothing above U+10FFFF. Bytes that break the rules are
// never dropped silently: one invalid run (the "maximal subpart" of the Unicode standard, 3.9) becomes one
// U+FFFD. Free functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::text {

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;

enum class Utf8Status : uint8_t {
  kValid,
  kInvalid,    // can't become valid, whatever follows
  kIncomplete  // the text ends inside a character that is well-formed so far
};

// One step through a text. `size` is the number of bytes to advance (at least 1): the character's, or those
// of the invalid or incomplete run, whose code_point is U+FFFD.
struct Utf8Step {
  uint32_t code_point;
  uint32_t size;
  Utf8Status status;
};

// Reads the character at the beginning of `bytes`, which must not be empty.
Utf8Step DecodeUtf8(std::string_view bytes);

// `code_point` must be a Unicode scalar value.
void AppendUtf8(uint32_t code_point, std::string* out);

bool IsValidUtf8(std::string_view bytes);

// The length of the longest valid prefix.
size_t ValidUtf8Prefix(std::string_view bytes);

// Turns bytes that come in arbitrary pieces into valid UTF-8: an unfinished character at the end of a piece
// is held back until it is complete. The concatenated output doesn't depend on how the input was cut.
class Utf8Stream {
 public:
  // Appends to *out what has become certain.
  void Append(std::string_view bytes, std::string* out);
  // The input ends here: a tail that is still incomplete becomes one U+FFFD. Ready for a new text afterwards.
  void Finish(std::string* out);

  // Bytes held back, at most 3.
  size_t pending() const { return tail_.size(); }

 private:
  std::string tail_;
};

// The same for a whole text: every invalid run becomes one U+FFFD.
std::string ToValidUtf8(std::string_view bytes);

}  // namespace sluice::text
