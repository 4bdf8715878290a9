// TokenList: a tokenizer as GGUF describes it, before its special tokens have roles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace sluice::convert {

using text::TokenKind;

struct TokenList {
  std::string model;  // tokenizer.ggml.model: "llama" (merges by score), "gpt2" (by rank), "t5" (unigram)
  std::string pre;    // tokenizer.ggml.pre
  std::vector<std::string> texts;
  std::vector<float> scores;  // empty, or one for each text
  std::vector<TokenKind> kinds;
  std::vector<std::string> merges;  // "gpt2": "left right"
  std::optional<bool> add_space_prefix, remove_extra_whitespaces;
  std::string precompiled_charsmap;  // bytes; "t5"
  // Whether a text begins with BOS, where a file says so.
  std::optional<bool> adds_bos;

  // Puts a token at an id, filling a gap before it with unused ones. Error: kCorrupt for an id out of all
  // reason.
  Status Put(int64_t id, std::string text, TokenKind kind);
  // Unused tokens up to this size.
  void PadTo(size_t size);
  // kNoToken when there is none.
  text::TokenId Find(std::string_view text) const;
};

}  // namespace sluice::convert
