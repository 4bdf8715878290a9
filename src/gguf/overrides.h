// Metadata overrides, as people type them on the command line.
#pragma once

#include <string_view>

#include "base/result.h"
#include "gguf/metadata.h"

namespace sluice::gguf {

// "KEY=TYPE:VALUE" with TYPE int, float, bool or str (as llama.cpp's --override-kv), or "KEY=VALUE" for a key
// that is there and gives the type. A key that exists keeps its type. Errors, naming the key:
// kInvalidArgument for text that can't be read, a type that differs from the key's, arrays, and keys that say
// how the file is laid out.
Status ApplyOverride(std::string_view text, Metadata& metadata);

}  // namespace sluice::gguf
