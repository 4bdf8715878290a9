// String formatting as templates use it: 'a %s' % x, 'a {}'.format(x), and the dates of strftime_now.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/value.h"

namespace sluice::chat::jinja {

// format % values, where `values` is one value, a tuple, or a dict for %(name)s.
// Errors: kCorrupt (too few values, a type that the conversion can't take), kUnsupported (unknown
// conversion).
Result<Value> FormatPercent(const Text& format, const Value& values, Heap* heap);

// format.format(…): {}, {0}, {name}, each with an optional ":spec". No attributes or items: {0.x} is
// kUnsupported.
Result<Value> FormatBraces(const Text& format, const Arguments& arguments, Heap* heap);

// `seconds` since 1970 (already in local time) by an strftime pattern, in English on every machine. What it
// doesn't know is left as it stands.
std::string FormatTime(std::string_view pattern, int64_t seconds);

}  // namespace sluice::chat::jinja
