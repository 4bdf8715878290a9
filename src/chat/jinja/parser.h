// The parser: template source → syntax tree (ast.h). What the dialect leaves out on purpose (other files:
// include, import, extends) is refused here by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/jinja/ast.h"
#include "chat/jinja/limits.h"

namespace sluice::chat::jinja {

// A parsed template. Immutable; renderings on several threads may share it.
struct Template {
  std::string source;  // normalised; what offsets count in
  Block body;
  // Filters and tests that don't exist ("line 3, column 7: no filter named 'attr'"). Only reaching one is an
  // error.
  std::vector<std::string> unknown_names;
};

// Errors: kUnsupported (syntax, with line and column), kResourceExhausted (too long, nested too deep).
Result<Template> Parse(std::string_view text, const Limits& limits = {});

}  // namespace sluice::chat::jinja
