// What SentencePiece's tokenizers share: spaces spelled as "▁" (U+2581) in token texts, and bytes for what
// has no token. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace sluice::text {

// Appends `text` with its spaces as "▁".
void AppendMarkingSpaces(std::string_view text, std::string* out);
// The reverse.
void AppendUnmarkingSpaces(std::string_view text, std::string* out);

// Appends the byte tokens of `bytes`. If one of them is missing, the unknown token stands for the whole, and
// only once for neighbours; if there is none either, nothing.
void AppendBytesOrUnknown(const Vocabulary& vocabulary, std::string_view bytes, std::vector<TokenId>* out);

}  // namespace sluice::text
