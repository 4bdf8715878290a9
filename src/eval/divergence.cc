#include "eval/divergence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "base/math.h"
#include "sample/softmax.h"

namespace sluice::eval {
namespace {

size_t TopToken(std::span<const float> logits) {
  const float max = sample::MaxLogit(logits);
  return static_cast<size_t>(std::ranges::find_if(logits, [&](float x) { return x >= max; }) -
                             logits.begin());
}

}  // namespace

double Divergence::Add(std::span<const float> base, std::span<const float> logits, int32_t target) {
  SLUICE_CHECK(base.size() == logits.size());
  SLUICE_CHECK(target >= 0 && static_cast<size_t>(target) < logits.size());
  const sample::LogSoftmax of_base(base), of_logits(logits);
  const double kl = sample::KlDivergence(base, of_base, logits, of_logits);
  values_.push_back(kl);
  if (!std::isinf(kl)) kl_.Add(kl);
  ++same_top_.total;
  same_top_.right += TopToken(base) == TopToken(logits) ? 1 : 0;

  const size_t next = static_cast<size_t>(target);
  const double base_nats = -of_base.LogProbability(base[next]);
  const double nats = -of_logits.LogProbability(logits[next]);
  base_perplexity_.Add(base_nats);
  perplexity_.Add(nats);
  if (!std::isinf(base_nats) && !std::isinf(nats)) extra_nats_.Add(nats - base_nats);
  return kl;
}

double Divergence::Quantile(double share) const {
  SLUICE_CHECK(share >= 0 && share <= 1);
  if (values_.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(values_.size()));
  const size_t index = static_cast<size_t>(std::max(1.0, rank)) - 1;
  std::vector<double> values = values_;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double Divergence::PerplexityRatio() const { return ExpDouble(extra_nats_.mean()); }

Interval Divergence::PerplexityRatioConfidence95() const {
  const Interval nats = extra_nats_.Confidence95();
  return {ExpDouble(nats.low), ExpDouble(nats.high)};
}

}  // namespace sluice::eval
