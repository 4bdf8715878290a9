// Texts that show a model at work, cut into pieces that it reads each on its own: for importance, error
// feedback, and how much quantising hurts.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/model.h"

namespace sluice::app {

// How a text is read.
struct TextFlags {
  int64_t chunk = 512;   // tokens that are read on their own
  int64_t chunks = 0;    // at most; 0: all
  bool special = false;  // control tokens in the text are meant as such

  void AddTo(CLI::App& command);
};

// The file's text as ids, without BOS. `special`: control tokens in it are meant as such. Errors: those of
// ReadWholeFile and of encoding; kInvalidArgument for a text without tokens.
Result<std::vector<TokenId>> ReadIds(const std::string& file, const text::Tokenizer& tokenizer, bool special);

// The same in pieces, each begun as the model wants a text to begin. Error: kInvalidArgument, too, for pieces
// of no tokens.
Result<std::vector<std::vector<TokenId>>> ReadChunks(const std::string& file,
                                                     const text::Tokenizer& tokenizer,
                                                     const TextFlags& flags);

}  // namespace sluice::app
