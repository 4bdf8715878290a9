// Divergence: how far a model's predictions are from those of a base, over many positions of a text: from the
// same model with other weight types, say, or other types of keys and values.
//
//   Divergence divergence;
//   divergence.Add(base_logits, logits, next_token);   // position after position
//   divergence.kl().mean();                             // nats a token
//
// All numbers are double, and the same on every machine for the same logits in the same order. Keeps 8 bytes
// a position, for the quantiles. A value; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/perplexity.h"
#include "eval/statistics.h"

namespace sluice::eval {

class Divergence {
 public:
  // One position: the logits [vocabulary] of the base and of the model, each as they are or with a constant
  // added (so log-probabilities serve as well), and the token that really came next, 0 ≤ target < vocabulary.
  // Returns the KL divergence there (sample::KlDivergence).
  double Add(std::span<const float> base, std::span<const float> logits, int32_t target);

  int64_t positions() const { return static_cast<int64_t>(values_.size()); }
  // Positions where the model rules out what the base does not. They are the largest of all in quantiles and
  // in max(), and left out of kl().
  int64_t infinite() const { return positions() - kl_.count(); }

  // KL divergence in nats: mean, standard error, interval. Positions are taken as independent, which those of
  // one text are not quite: the true interval is somewhat wider.
  const RunningMean& kl() const { return kl_; }
  // The smallest value that at least `share` of the positions do not exceed: 0.5 gives the median. 0 when
  // nothing was added.
  double Quantile(double share) const;
  double max() const { return Quantile(1); }

  // Positions where both have the same likeliest token (the lowest id among equals).
  const Score& same_top() const { return same_top_; }

  const Perplexity& base_perplexity() const { return base_perplexity_; }
  const Perplexity& perplexity() const { return perplexity_; }
  // Perplexity of the model over that of the base: e to the mean of log p(next) − log q(next). Its interval
  // is much narrower than the perplexities' own, because what is hard in the text is hard for both. Positions
  // that either rules out are left out.
  double PerplexityRatio() const;
  Interval PerplexityRatioConfidence95() const;

 private:
  RunningMean kl_;
  std::vector<double> values_;
  Score same_top_;
  Perplexity base_perplexity_, perplexity_;
  RunningMean extra_nats_;  // −log q(next) + log p(next)
};

}  // namespace sluice::eval
