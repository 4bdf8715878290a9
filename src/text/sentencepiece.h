// Byte-pair encoding by score, as in SentencePiece's BPE models (Llama 2, Gemma, Mistral …): of all
// neighbours that together are a token, those with the best score join first. What isn't a token in the end
// becomes bytes. Source: google/sentencepiece, src/bpe_model.cc.
//
// Everything it needs is in the vocabulary. Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace sluice::text {

// Appends the tokens of `text`, with a space put in front if `prefix_space`. `text` is shorter than 1 GiB. In
// time n log n of its length.
void EncodeSentencePiece(const Vocabulary& vocabulary, std::string_view text, bool prefix_space,
                         std::vector<TokenId>* out);

}  // namespace sluice::text
