// Values as text: what {{ value }} shows, what Python's repr shows inside of lists, and JSON both ways.
//
// Serialisations keep the trust of the strings in them; the marks around those (quotes, brackets) count as
// untrusted, since nothing a serialiser writes is ever meant as a special token.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/jinja/value.h"

namespace sluice::chat::jinja {

// As {{ value }} prints it: strings as they are, numbers as Python shows them, None, True, ['a', 1], {'k':
// None}; undefined is nothing. Error: kResourceExhausted (nested too deep); too much text is the builder's
// own error.
Status Print(const Value& value, TextBuilder* out);
// The same as a Text.
Result<Text> ToText(const Value& value, Meter* meter);

// 3.0 as "3.0", 1e+16 as "1e+16": Python's repr, the shortest that reads back the same.
std::string FormatFloat(double number);

// Views must outlive the printing.
struct JsonStyle {
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
  std::string indent;  // of one level; only with `multiline`
  bool multiline = false;
  bool ascii = false;  // everything else as \uXXXX
  bool sort_keys = false;
};

// JSON as Python's json.dumps writes it. Errors: kCorrupt for what JSON has no word for, kResourceExhausted.
Status PrintJson(const Value& value, const JsonStyle& style, TextBuilder* out);

// Reads JSON, order of keys kept, of two equal keys the last one wins. Integers beyond 64 bits become floats.
// All strings get `trusted`. Errors: kCorrupt (with the byte), kResourceExhausted.
Result<Value> ParseJson(std::string_view json, bool trusted, Heap* heap);

}  // namespace sluice::chat::jinja
