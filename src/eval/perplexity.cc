#include "eval/perplexity.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "base/check.h"
#include "base/math.h"
#include "sample/softmax.h"

namespace sluice::eval {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

double Perplexity::Add(std::span<const float> logits, int32_t target) {
  SLUICE_CHECK(target >= 0 && static_cast<size_t>(target) < logits.size());
  const double nats = -sample::LogSoftmax(logits).LogProbability(logits[static_cast<size_t>(target)]);
  Add(nats);
  return nats;
}

void Perplexity::Add(double nats) {
  if (std::isinf(nats)) {
    ++ruled_out_;
  } else {
    nats_.Add(nats);
  }
}

double Perplexity::value() const { return ruled_out_ > 0 ? kInfinity : ExpDouble(nats_.mean()); }

Interval Perplexity::Confidence95() const {
  if (ruled_out_ > 0) return {kInfinity, kInfinity};
  const Interval nats = nats_.Confidence95();
  return {ExpDouble(nats.low), ExpDouble(nats.high)};
}

}  // namespace sluice::eval
