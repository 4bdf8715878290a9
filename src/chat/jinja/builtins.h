// The functions that templates find ready-made: filters (x | name), tests (x is name), methods (x.name()) and
// global functions. There is nothing else to call: no attribute of a host object, no file, no clock unless
// one is handed in.
//
// Each is one row of a const table: a name, a C++ function and its parameters. The tables are immutable; any
// thread.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/jinja/value.h"

namespace sluice::chat::jinja {

class Interpreter;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// One call as a builtin sees it.
struct Invocation {
  Interpreter& interpreter;
  Heap& heap;
  Value self;      // a filter's or test's input, a method's object
  Arguments& all;  // as written
  // Bound to the builtin's parameters, in their order; those that were not given are undefined.
  std::array<Value, 4> args = {};

  // `self` as printed: what filters of strings work on. Methods of strings have text() in any case.
  Result<Text> SelfText() const;
  const Text& text() const { return *self.text(); }

  bool Has(size_t i) const { return !args[i].is_undefined() && !args[i].is_none(); }
  // args[i], or `absent` where it is undefined or none. Error: kCorrupt for another type.
  Result<int64_t> Integer(size_t i, int64_t absent) const;
  // Likewise; error: kCorrupt where it is no string.
  Result<Text> String(size_t i, std::string_view absent = "") const;
  bool Boolean(size_t i, bool absent = false) const { return Has(i) ? args[i].Truthy() : absent; }
};

struct Builtin {
  std::string_view name;
  // Names of the parameters, separated by blanks; those behind "|" may be left out. "*": anything, the
  // function looks at `all` itself.
  std::string_view parameters;
  Result<Value> (*function)(Invocation&);
};

// nullptr where there is none of that name.
const Builtin* FindFilter(std::string_view name);
const Builtin* FindTest(std::string_view name);
const Builtin* FindFunction(std::string_view name);
const Builtin* FindMethod(const Value& object, std::string_view name);

// Binds the arguments and calls. Errors: the builtin's own, kCorrupt for arguments that don't fit its
// parameters.
Result<Value> Invoke(const Builtin& builtin, Value self, Arguments arguments, Interpreter* interpreter);

// What a for loop, list() or join sees: the list itself, a dict's keys, a string's characters, nothing for
// undefined. Error: kCorrupt for anything else.
Result<List*> Iterate(const Value& value, Heap* heap);

}  // namespace sluice::chat::jinja
