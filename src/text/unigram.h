// UnigramEncoder: the segmentation of a text whose tokens' log probabilities have the greatest sum (T5,
// XLM-R). Source: google/sentencepiece, src/unigram_model.cc and src/normalizer.cc.
//
// Immutable after Create; any number of threads may encode at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/charsmap.h"
#include "text/vocabulary.h"

namespace sluice::text {

class UnigramEncoder {
 public:
  // Errors: those of CharsMap::Create.
  static Result<UnigramEncoder> Create(const Vocabulary& vocabulary, const VocabularySource& source);

  // Appends the tokens of `text`, normalised. Time: its length times that of the longest token. Errors:
  // kResourceExhausted when normalising makes far too much of it.
  Status Encode(const Vocabulary& vocabulary, std::string_view text, std::vector<TokenId>* out) const;

  bool prefix_space() const { return prefix_space_; }
  size_t memory_bytes() const { return charsmap_.memory_bytes(); }

 private:
  // Applies the character map, marks spaces, and puts one in front or joins runs of them where the model
  // wants that.
  Result<std::string> Normalise(std::string_view text) const;

  CharsMap charsmap_;
  bool prefix_space_ = false;
  bool join_spaces_ = false;
  double unknown_score_ = 0;  // of a character that is no token
};

}  // namespace sluice::text
