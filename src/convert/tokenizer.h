// Tokenizer files of a checkpoint's folder → the tokenizer keys of GGUF: tokenizer.model or tokenizer.json,
// the tokens that tokenizer_config.json and added_tokens.json add, special ids, the chat template, and where
// answers end.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"

namespace sluice::convert {

struct TokenizerOptions {
  int64_t embedding_rows = 0;  // tokens that the model has rows for
  std::string pre;             // tokenizer.ggml.pre, where the file's own is not known
};

// Errors: kNotFound when the folder has no tokenizer; kCorrupt for tokens that the model has no row for, and
// what the readers of the files say, with the file's name. What could not be kept is appended to `warnings`.
Status ConvertTokenizer(const std::string& folder, const TokenizerOptions& options, gguf::Metadata& metadata,
                        std::vector<std::string>* warnings);

}  // namespace sluice::convert
