// TokenizerJson: tokenizer.json, the description that the tokenizers library reads. Of its kinds, BPE (over
// bytes, and over characters with a byte fall-back, whose ranks become scores), Unigram and WordPiece.
#pragma once

#include "base/result.h"
#include "convert/json_file.h"
#include "convert/token_list.h"

namespace sluice::convert {

// `pre` names the pre-tokenizer (tokenizer.ggml.pre) where the file's own is not known; else empty.
// `clean_up_spaces` decides between pre-tokenizers that cut alike. Errors: kCorrupt naming the key;
// kUnsupported for other kinds of model, and for a pre-tokenizer that is not known, with its patterns.
Result<TokenList> ReadTokenizerJson(const JsonObject& file, const std::string& pre, bool clean_up_spaces);

// The tokens that the file adds to its model's. Errors: kCorrupt.
Status AddTokens(const JsonObject& file, TokenList& list);

}  // namespace sluice::convert
