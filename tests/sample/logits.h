// Logits for tests: the same on every machine, shaped roughly like a model's (a bell with a few tall peaks).
#pragma once

#include <cstddef>
#include <vector>

#include "sample/random.h"

namespace sluice::sample {

inline std::vector<float> RandomLogits(size_t vocab_size, uint64_t seed, double spread = 4) {
  Random random(seed);
  std::vector<float> logits(vocab_size);
  for (float& logit : logits) {
    double sum = 0;
    for (int i = 0; i < 6; ++i) sum += random.Uniform() - 0.5;
    logit = static_cast<float>(sum * spread);
    if (random.Uniform() < 4.0 / static_cast<double>(vocab_size)) logit += static_cast<float>(2 * spread);
  }
  return logits;
}

}  // namespace sluice::sample
