// SentencePieceModel: tokenizer.model, a protocol buffer. Source of the fields: sentencepiece_model.proto of
// github.com/google/sentencepiece.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "convert/token_list.h"

namespace sluice::convert {

// Errors: kCorrupt naming the byte; kUnsupported for models that cut into words or characters.
Result<TokenList> ReadSentencePieceModel(std::span<const std::byte> bytes);

}  // namespace sluice::convert
