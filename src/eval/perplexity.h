// Perplexity: e to the mean of −log p(next token), with its 95 % interval. Log-probabilities are computed in
// double and summed in the order they are added, so the result is the same on every machine. A value; one
// thread at a time.
#pragma once

#include <cstdint>
#include <span>

#include "eval/statistics.h"

namespace sluice::eval {

class Perplexity {
 public:
  // The logits at one position, [vocabulary], and the token that really came next, 0 ≤ target < vocabulary.
  // Returns −log p(target) in nats; infinity where the model rules the token out (−infinity or NaN).
  double Add(std::span<const float> logits, int32_t target);
  // −log p(target) as it is: a number or infinity.
  void Add(double nats);

  int64_t tokens() const { return nats_.count() + ruled_out_; }
  int64_t ruled_out() const { return ruled_out_; }

  // All infinite when a token was ruled out; 1 when nothing was added.
  double value() const;
  Interval Confidence95() const;
  // Of the other tokens, when some were ruled out.
  const RunningMean& nats() const { return nats_; }

 private:
  RunningMean nats_;
  int64_t ruled_out_ = 0;
};

}  // namespace sluice::eval
