// Patterns for names of tensors, as people type them.
#pragma once

#include <string_view>

namespace sluice::quantize {

// Whether a name matches. `*` stands for any text, `?` for any character, `[a-c5]` for one of those, `[!…]`
// for one of the others; all else for itself, with lower and upper case apart. With any of these the whole
// name must match; without, the pattern may stand anywhere in it: "ffn_down", "blk.3.", "blk.[0-7].attn_*".
// Takes time in proportion to the product of the lengths at most.
bool Matches(std::string_view pattern, std::string_view name);

}  // namespace sluice::quantize
