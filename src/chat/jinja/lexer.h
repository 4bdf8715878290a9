// The lexer: template source → tokens. Whitespace control happens here: trim_blocks and lstrip_blocks are on,
// and one newline at the end of the template is dropped, as the program that most templates are written for
// has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::chat::jinja {

struct Token {
  enum class Kind : uint8_t {
    kData,         // text between tags
    kOutputBegin,  // {{
    kOutputEnd,    // }}
    kBlockBegin,   // {%
    kBlockEnd,     // %}
    kName,
    kString,  // text: still with quotes and escapes
    kInteger,
    kFloat,
    kOperator,
    kEnd,
  };
  Kind kind;
  uint32_t offset;        // in the source
  std::string_view text;  // a view into the source
};

// Line ends as "\n" and without the last one: what Lex wants, and what offsets count in.
std::string NormalizeSource(std::string_view text);

// "line 3, column 14" (both from 1, columns in characters).
std::string DescribePlace(std::string_view source, size_t offset);

// Tokens are views into `source`. The last one is kEnd. Error: kUnsupported, with line and column.
Result<std::vector<Token>> Lex(std::string_view source);

// The value of a kString token.
std::string Unescape(std::string_view quoted);

}  // namespace sluice::chat::jinja
