// What operators do with values: arithmetic, joining and repeating sequences, slices.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "chat/jinja/ast.h"
#include "chat/jinja/value.h"

namespace sluice::chat::jinja {

// a op b, by Python's rules for integers (floor division, sign of the remainder), floats, strings and lists.
// Integers have 64 bits. Errors: kCorrupt (types that don't go together, overflow, division by zero),
// kResourceExhausted.
Result<Value> Arithmetic(Binary::Op op, const Value& a, const Value& b, Heap* heap);

// value[start:stop:step] of a string or list; what is absent has its default.
Result<Value> SliceValue(const Value& value, std::optional<int64_t> start, std::optional<int64_t> stop,
                         std::optional<int64_t> step, Heap* heap);

}  // namespace sluice::chat::jinja
