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
  // tokenizer.ggml.model: "llama" (merges by score), "gpt2" (by rank), "t5" (unigram), "bert" (WordPiece)
  std::string model;
  std::string pre;  // tokenizer.ggml.pre
  std::vector<std::string> texts;
  std::vector<float> scores;  // empty, or one for each text
  std::vector<TokenKind> kinds;
  std::vector<std::string> merges;  // "gpt2": "left right"
  std::optional<bool> add_space_prefix, remove_extra_whitespaces;
  std::string precompiled_charsmap;              // bytes; "t5"
  std::optional<bool> lowercase, strip_accents;  // "bert"
  // Whether a text begins with BOS and ends with EOS, where a file says so.
  std::optional<bool> adds_bos, adds_eos;

  // Puts a token at an id, filling a gap before it with unused ones. Error: kCorrupt for an id out of all
  // reason.
  Status Put(int64_t id, std::string text, TokenKind kind);
  // Tokens like <0x0A> become kByte.
  void MarkBytes();
  // Unused tokens up to this size.
  void PadTo(size_t size);
  // kNoToken when there is none.
  text::TokenId Find(std::string_view text) const;
};

}  // namespace sluice::convert
