// DRY ("don't repeat yourself"): against whole runs of tokens coming again. If the answer so far ends in a
// run of n tokens that stood earlier in the window, the token that followed it there gets
//   logit −= multiplier · base^(n − allowed_length)     for the longest such n ≥ allowed_length
// A run never reaches across a sequence breaker (a text such as a line feed), and a token that completes one
// is never punished, so that lists and dialogue may keep their shape. Source of the method: p-e-w,
// text-generation-webui pull request 5677; breakers are found here in the text itself, however it was cut
// into tokens.
//
// Nothing is allocated after construction. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sample/token_history.h"

namespace sluice::sample {

// Appends the bytes that a token stands for.
using AppendPiece = std::function<void(int32_t token, std::string* out)>;

class Dry {
 public:
  struct Settings {
    size_t window;  // tokens
    double multiplier, base;
    size_t allowed_length;
    bool active() const { return window > 0 && multiplier > 0; }
  };
  // What the future depends on, besides the history.
  struct State {
    uint64_t run_length = 0;                 // tokens since the last breaker
    std::vector<uint32_t> breaker_progress;  // bytes of each breaker that the text ends with
  };
  Dry(const Settings& settings, std::vector<std::string> breakers, AppendPiece append_piece,
      size_t vocab_size);

  void Accept(int32_t token);
  void Apply(const TokenHistory& history, std::span<float> logits);

  State Save() const;
  // False when `state` is none of this object's.
  bool Restore(const State& state);

  size_t memory_bytes() const {
    return runs_.capacity() * sizeof(runs_[0]) + longest_.capacity() * sizeof(longest_[0]);
  }

 private:
  struct Breaker {
    std::string text;
    std::vector<uint32_t> border;  // Knuth-Morris-Pratt: the longest proper border of each prefix
    uint32_t progress = 0;
    // Goes through `piece` and returns whether the breaker was completed in it.
    bool Advance(std::string_view piece, uint32_t* state) const;
  };
  void FindRuns(const TokenHistory& history, size_t limit);
  bool CompletesBreaker(int32_t token);

  Settings settings_;
  AppendPiece append_piece_;
  std::vector<Breaker> breakers_;
  size_t run_length_ = 0;
  std::string piece_;
  std::vector<uint32_t> runs_;  // [window] the length of the run that ends i tokens ago
  std::vector<uint32_t>
      longest_;  // [vocabulary] the longest run that this token would continue; all 0 between calls
};

}  // namespace sluice::sample
