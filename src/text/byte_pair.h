// BytePairEncoder: byte-pair encoding by rank, as GPT-2 introduced it (over bytes) and Gemma 4 uses it (over
// characters). Words come from a PreTokenizer.
//
// Immutable after Create; any number of threads may encode at once.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/merge_table.h"
#include "text/pretokenizer.h"
#include "text/vocabulary.h"

namespace sluice::text {

class BytePairEncoder {
 public:
  // Errors: those of MergeTable::Create. Remarks on a missing or unknown pre-tokenizer and on missing bytes
  // are appended to *warnings.
  static Result<BytePairEncoder> Create(const Vocabulary& vocabulary, const VocabularySource& source,
                                        std::vector<std::string>* warnings);

  // Appends the tokens of `text`.
  Status Encode(const Vocabulary& vocabulary, std::string_view text, std::vector<TokenId>* out) const;

  bool clean_up_spaces() const { return spec_->clean_up_spaces; }
  size_t memory_bytes() const { return merges_.memory_bytes() + words_.memory_bytes(); }

 private:
  BytePairEncoder(const PreTokenizerSpec& spec, MergeTable merges)
      : spec_(&spec), words_(spec), merges_(std::move(merges)) {}

  // Fills bytes_.
  void TakeBytes(const Vocabulary& vocabulary, std::vector<std::string>* warnings);
  // The token that `word` is as a whole, if words may be taken so.
  TokenId WholeWord(const Vocabulary& vocabulary, std::string_view word, std::string* spelling) const;
  void AppendSymbols(const Vocabulary& vocabulary, std::string_view word,
                     std::vector<TokenId>* symbols) const;

  const PreTokenizerSpec* spec_;
  PreTokenizer words_;
  MergeTable merges_;
  std::array<TokenId, 256> bytes_ = {};  // the token of each byte before merging; kNoToken if it has none
};

}  // namespace sluice::text
