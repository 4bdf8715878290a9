// The penalties on single tokens that occurred already: repetition, presence and frequency. Over the tokens
// of a window of the history, with c the number of times that a token occurs there, in this order:
//   logit = logit > 0 ? logit / repeat : logit · repeat        (Keskar et al. 2019, arXiv:1909.05858)
//   logit = logit − (c · frequency + presence)                 (the OpenAI API's definition)
// One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sample/token_history.h"

namespace sluice::sample {

class Penalties {
 public:
  struct Settings {
    size_t window;  // tokens
    float repeat, presence, frequency;
    bool active() const { return window > 0 && (repeat != 1 || presence != 0 || frequency != 0); }
  };
  Penalties(const Settings& settings, size_t vocab_size);

  // To be called after each token was pushed to `history`, which holds more than the window.
  void Accept(const TokenHistory& history);

  void Apply(const TokenHistory& history, std::span<float> logits);

  // Forgets all tokens, as the history that it follows does.
  void Clear() { std::fill(counts_.begin(), counts_.end(), 0); }

  size_t memory_bytes() const { return counts_.capacity() * sizeof(counts_[0]); }

 private:
  Settings settings_;
  std::vector<int32_t> counts_;  // [vocabulary], occurrences in the window; empty when there is nothing to do
};

}  // namespace sluice::sample
