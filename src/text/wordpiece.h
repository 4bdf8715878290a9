// WordPiece: BERT's tokenizer. Text is cleaned, lower-cased and cut at spaces, punctuation and Chinese
// characters; each word is then covered with the longest tokens from its beginning on. GGUF files spell
// tokens that begin a word with "▁" in front and the others without (BERT's own "##" is gone). Source:
// huggingface/tokenizers, normalizers/bert.rs, pre_tokenizers/bert.rs and models/wordpiece.
//
// Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace sluice::text {

struct WordPieceOptions {
  bool lowercase = true;
  bool strip_accents = true;
};

// Appends the tokens of `text`; a word that can't be covered is the unknown token.
void EncodeWordPiece(const Vocabulary& vocabulary, std::string_view text, WordPieceOptions options,
                     std::vector<TokenId>* out);

}  // namespace sluice::text
