// WordPiece tokenizers of tokenizer.json (BERT's): longest match first, word by word.
#pragma once

#include "base/result.h"
#include "convert/json_file.h"
#include "convert/token_list.h"

namespace sluice::convert {

// Reads `model` of `file`. GGUF spells tokens that begin a word with "▁" in front, and those that continue
// one without their "##". Errors: kCorrupt naming the key; kUnsupported for a normalizer or pre-tokenizer
// other than BERT's.
Status ReadWordPiece(const JsonObject& file, const JsonObject& model, TokenList& list);

}  // namespace sluice::convert
