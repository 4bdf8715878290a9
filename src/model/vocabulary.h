// From a model file's metadata to its tokenizer and to the texts of its special tokens.
#pragma once

#include "base/result.h"
#include "gguf/metadata.h"
#include "text/tokenizer.h"

namespace sluice::model {

// Reads the tokenizer.ggml.* keys. Errors: kCorrupt for keys of the wrong type; those of Tokenizer::Create.
Result<text::Tokenizer> ReadTokenizer(const gguf::Metadata& metadata);

}  // namespace sluice::model
