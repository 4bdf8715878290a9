// Softmax over a vocabulary: probabilities from logits, in double and in one fixed order, so that every
// machine gets the same bits. Used by the sampler, for log-probabilities, and by eval.
//
// What odd logits mean, here and in the sampler: a NaN is a token that cannot come (like −infinity);
// +infinity counts as the largest finite float. Pure functions, for any thread.
#pragma once

#include <cstdint>
#include <span>

namespace sluice::sample {

// e^x for x ≤ 0, to about 10^−14 of its value; 0 below −700 and for a NaN. Of +, −, × and bit operations
// only, not fma: 150,000 of these stand between two tokens, and this way compilers vectorise them on every
// baseline.
double ExpNonPositive(double x);

// The largest logit, at most the largest finite float; −infinity if no token can come.
float MaxLogit(std::span<const float> logits);

// Σ e^(logit − max), with max = MaxLogit(logits), in 16 lanes (element i in lane i mod 16) folded 8, 4, 2, 1.
// At least 1, or 0 if no token can come.
double SumExp(std::span<const float> logits, float max);

// What turns a logit into a log-probability: logit − max − log Σ e^(logit − max).
class LogSoftmax {
 public:
  explicit LogSoftmax(std::span<const float> logits);
  // Natural logarithm; −infinity for a token that cannot come.
  double LogProbability(float logit) const;

  double max() const { return max_; }          // of the logits; −infinity if no token can come
  double log_sum() const { return log_sum_; }  // log Σ e^(logit − max)

 private:
  double max_;
  double log_sum_;
};

// How far a model's prediction is from that of a base, in nats: the Kullback-Leibler divergence
//   Σ p(i) · (log p(i) − log q(i)),  p the base's probabilities, q the model's,
// of two rows of logits [vocabulary] and their softmaxes; summed in 16 lanes as SumExp does. At least 0;
// infinity where the model rules out a token that the base does not, or either has none that can come.
double KlDivergence(std::span<const float> base, const LogSoftmax& of_base, std::span<const float> logits,
                    const LogSoftmax& of_logits);

struct TokenLogprob {
  int32_t id;
  double logprob;
};

// The top.size() likeliest tokens, likeliest first, the lower id first among equals, with their
// log-probabilities. Returns how many there are: fewer than asked for when the vocabulary, or what can come
// of it, is smaller.
size_t TopLogprobs(std::span<const float> logits, std::span<TokenLogprob> top);

}  // namespace sluice::sample
