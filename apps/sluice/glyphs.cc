#include "glyphs.h"

#include <utf8proc.h>

#include <algorithm>

namespace sluice::app {

namespace {

constexpr std::string_view kReplacement = "\uFFFD";
constexpr std::string_view kTab = "    ";
// A cluster is looked for in the bytes just before the cursor; none worth the name is longer.
constexpr size_t kLookBehind = 256;

struct CodePoint {
  int32_t value;  // −1 for a byte that is not UTF-8
  size_t size;
};

CodePoint At(std::string_view text, size_t at) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
  utf8proc_int32_t value = -1;
  const utf8proc_ssize_t size = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &value);
  if (size <= 0) return {-1, 1};
  return {value, static_cast<size_t>(size)};
}

bool IsControl(int32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

}  // namespace

size_t NextCharacter(std::string_view text, size_t at) {
  CodePoint last = At(text, at);
  size_t end = at + last.size;
  utf8proc_int32_t state = 0;
  while (end < text.size() && last.value >= 0) {
    const CodePoint next = At(text, end);
    if (next.value < 0 || utf8proc_grapheme_break_stateful(last.value, next.value, &state)) break;
    end += next.size;
    last = next;
  }
  return end;
}

size_t PreviousCharacter(std::string_view text, size_t at) {
  size_t begin = at > kLookBehind ? at - kLookBehind : 0;
  while (begin > 0 && begin + 1 < at && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  const std::string_view before = text.substr(0, at);
  for (size_t next = begin; (next = NextCharacter(before, begin)) < at;) begin = next;
  return begin;
}

Glyph Show(std::string_view character) {
  Glyph glyph;
  for (size_t at = 0; at < character.size();) {
    const CodePoint code_point = At(character, at);
    if (code_point.value == '\t') {
      glyph.text += kTab;
      glyph.columns += static_cast<int>(kTab.size());
    } else if (code_point.value >= 0 && (code_point.value < 0x20 || code_point.value == 0x7f)) {
      glyph.text += {'^', static_cast<char>(code_point.value ^ 0x40)};
      glyph.columns += 2;
    } else if (code_point.value < 0 || IsControl(code_point.value)) {
      glyph.text += kReplacement;
      glyph.columns += 1;
    } else {
      // Parts of a cluster are drawn over each other: no terminal gives one more than two columns.
      const int wide = utf8proc_charwidth(code_point.value);
      glyph.columns = at == 0 ? wide : std::max(glyph.columns, std::min(glyph.columns + wide, 2));
      glyph.text += character.substr(at, code_point.size);
    }
    at += code_point.size;
  }
  return glyph;
}

int Columns(std::string_view text) {
  int columns = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = NextCharacter(text, at);
    columns += Show(text.substr(at, end - at)).columns;
    at = end;
  }
  return columns;
}

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint code_point = At(text, at);
    if (code_point.value == '\n' || code_point.value == '\t') {
      printable += text[at];
    } else if (code_point.value < 0 || IsControl(code_point.value)) {
      // A carriage return before a line feed is only another way to end a line.
      const bool line_end = code_point.value == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
      if (!line_end) printable += kReplacement;
    } else {
      printable += text.substr(at, code_point.size);
    }
    at += code_point.size;
  }
  return printable;
}

}  // namespace sluice::app
