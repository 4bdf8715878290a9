#include "sample/penalties.h"

#include <algorithm>
#include <cstdlib>

namespace sluice::sample {

Penalties::Penalties(const Settings& settings, size_t vocab_size)
    : settings_(settings), counts_(settings.active() ? vocab_size : 0) {}

void Penalties::Accept(const TokenHistory& history) {
  if (counts_.empty()) return;
  ++counts_[static_cast<size_t>(history[0])];
  if (history.size() > settings_.window) --counts_[static_cast<size_t>(history[settings_.window])];
}

void Penalties::Apply(const TokenHistory& history, std::span<float> logits) {
  if (counts_.empty()) return;
  const size_t window = std::min(history.size(), settings_.window);
  // A count is turned negative once its token is done, so that each is done once, and turned back afterwards.
  for (size_t i = 0; i < window; ++i) {
    const auto token = static_cast<size_t>(history[i]);
    int32_t& count = counts_[token];
    if (count < 0) continue;
    float& logit = logits[token];
    logit = logit > 0 ? logit / settings_.repeat : logit * settings_.repeat;
    logit -= static_cast<float>(count) * settings_.frequency + settings_.presence;
    count = -count;
  }
  for (size_t i = 0; i < window; ++i) {
    int32_t& count = counts_[static_cast<size_t>(history[i])];
    count = std::abs(count);
  }
}

}  // namespace sluice::sample
