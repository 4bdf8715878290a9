// Characters as people see them: grapheme clusters, what stands for them on a terminal, and how many columns that takes.
//
// Free functions over UTF-8; any thread. A byte that is not valid UTF-8 counts as a character of its own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::app {

// Where the character that begins at `at` ends. at < text.size().
size_t NextCharacter(std::string_view text, size_t at);
// Where the character that ends at `at` begins. at > 0.
size_t PreviousCharacter(std::string_view text, size_t at);

// One character as it may be written to a terminal: control characters in caret form (^[), tabs as spaces, bytes that
// are not UTF-8 as U+FFFD.
struct Glyph {
  std::string text;
  int columns = 0;
};
Glyph Show(std::string_view character);

// Columns of a text without line feeds, shown character by character.
int Columns(std::string_view text);

// Text that is safe to print: control characters other than line feed and tab are taken out of it or made visible, so
// that a model or a file name can't move the cursor, change colours or set the clipboard. Line by line as it was.
std::string Printable(std::string_view text);

}  // namespace sluice::app
