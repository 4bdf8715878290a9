// Sampler: from logits to the next token, for one conversation. The chain, in this order (docs/sampling.md):
//   logit bias → repetition, frequency and presence penalties → DRY
//   → (temperature 0: the likeliest token, done) → top-k → typical → top-p → min-p → temperature → draw
// The same options, seed, tokens and logits give the same token on every machine: own random numbers, own exp
// and log, a total order (higher logit first, lower id first among equals) in every sort, sums in a fixed
// order.
//
// Owns all its buffers, sized for the vocabulary and the windows when it is made; nothing is allocated per
// token. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sample/dry.h"
#include "sample/options.h"
#include "sample/penalties.h"
#include "sample/random.h"
#include "sample/token_history.h"

namespace sluice::sample {

// What the sampler must know of the model.
struct SamplerModel {
  int32_t vocab_size;
  int64_t context_length;    // bounds the windows of the penalties
  AppendPiece append_piece;  // used while DRY is on; must stay callable as long as the sampler lives
};

// A token that may be drawn; its probability is weight / Σ weights.
struct Candidate {
  float logit;
  int32_t id;
  double weight;
};

// What a snapshot keeps. Everything else follows from the options.
struct SamplerState {
  Random::State random;
  std::vector<int32_t> history;  // oldest first
  Dry::State dry;
};

class Sampler {
 public:
  // Errors: those of Validate; kInvalidArgument when there is chance (temperature above 0) but no seed.
  static Result<Sampler> Create(const SamplerOptions& options, SamplerModel model);

  // Tells the sampler of a token that stands in the conversation: each of the prompt, then each that was
  // drawn. 0 ≤ token < vocabulary.
  void Accept(int32_t token);

  // Draws a token. `logits` has one entry for each token of the vocabulary; NaN means that a token can't
  // come. Nothing when no token can (all forbidden by bias, or a broken model): the answer ends there.
  std::optional<int32_t> Sample(std::span<const float> logits);

  // What the last Sample chose from.
  std::span<const Candidate> candidates() const { return candidates_; }

  SamplerState Save() const;
  // Errors: kInvalidArgument when `state` can't be one of a sampler with these options.
  Status Restore(const SamplerState& state);

  size_t memory_bytes() const;

 private:
  struct Filters {
    double temperature;  // 0 = greedy
    size_t top_k;        // 0 = off
    double top_p, min_p, typical_p;
  };
  struct Setup;
  explicit Sampler(Setup setup);

  void Choose(float max);
  void KeepTopK(float max);
  void KeepFrom(float floor, float max);
  void KeepTypical();
  void KeepNucleus(std::optional<double> total, float max);
  int32_t Draw();

  size_t vocab_size_;
  Filters filters_;
  std::vector<std::pair<int32_t, float>> bias_;
  TokenHistory history_;
  Penalties penalties_;
  Dry dry_;
  Random random_;
  std::vector<float> logits_;          // [vocabulary] with bias and penalties
  std::vector<Candidate> candidates_;  // capacity: the vocabulary
};

}  // namespace sluice::sample
