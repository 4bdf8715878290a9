// Unigram tokenizers of tokenizer.json: tokens with log probabilities, a map of characters, and spaces as
// "▁".
#pragma once

#include "base/result.h"
#include "convert/json_file.h"
#include "convert/token_list.h"

namespace sluice::convert {

// Reads `model` of `file`. Errors: kCorrupt naming the key; kUnsupported for a normalizer or pre-tokenizer
// that GGUF's tokenizer has no equal to.
Status ReadUnigram(const JsonObject& file, const JsonObject& model, TokenList& list);

// Whether a Metaspace pre-tokenizer puts a space before a text; false for other types. Error: kCorrupt.
Result<bool> MetaspaceInFront(const JsonObject& pre_tokenizer);

}  // namespace sluice::convert
