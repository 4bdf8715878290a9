// The tables behind builtins.h, one per file that defines builtins. Only builtins.cc reads them.
#pragma once

#include <span>

#include "chat/jinja/builtins.h"

namespace sluice::chat::jinja {

std::span<const Builtin> TextFilters();        // text_builtins.cc
std::span<const Builtin> TextMethods();        // text_builtins.cc
std::span<const Builtin> TextSearchFilters();  // text_search.cc
std::span<const Builtin> TextSearchMethods();  // text_search.cc
std::span<const Builtin> SequenceFilters();    // sequence_builtins.cc
std::span<const Builtin> ListMethods();        // container_methods.cc
std::span<const Builtin> DictMethods();        // container_methods.cc
std::span<const Builtin> LoopMethods();        // container_methods.cc
std::span<const Builtin> ValueFilters();       // value_builtins.cc: numbers, JSON, default
std::span<const Builtin> Tests();              // value_builtins.cc
std::span<const Builtin> Functions();          // functions.cc

// dict.items() and the filter of that name.
Result<Value> DictItems(Invocation& call);  // container_methods.cc

}  // namespace sluice::chat::jinja
