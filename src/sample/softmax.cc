#include "sample/softmax.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

#include "base/math.h"

namespace sluice::sample {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kLanes = 16;

inline double Power(double x) {
  // n = round-half-even(x·log2 e), from the low bits of a sum with 1.5·2^52; r = x − n·ln 2, the high part of
  // ln 2 short enough for an exact product; e^r by its series to the 11th power; 2^n by adding to the
  // exponent.
  constexpr double kMagic = 0x1.8p52;
  const double t = x * 0x1.71547652b82fep0 + kMagic;
  const double n = t - kMagic;
  const double r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
  double p = 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 1.0 / 2;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const double y = std::bit_cast<double>(std::bit_cast<uint64_t>(p) + (std::bit_cast<uint64_t>(t) << 52));
  return x >= -700 ? y : 0;
}

// e^(logit − max), with a logit above max (+infinity) taken as max.
inline double Weight(float logit, double max) {
  const double x = static_cast<double>(logit) - max;
  return Power(x > 0 ? 0 : x);
}

// The sum of the lanes, folded 8, 4, 2, 1.
inline double FoldLanes(double (&lanes)[kLanes]) {
  for (size_t width = kLanes / 2; width > 0; width /= 2) {
    for (size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

inline bool Likelier(const TokenLogprob& a, const TokenLogprob& b) {
  return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
}

}  // namespace

double ExpNonPositive(double x) { return Power(x); }

float MaxLogit(std::span<const float> logits) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    const float* const x = &logits[i];
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = x[lane] > lanes[lane] ? x[lane] : lanes[lane];
  }
  float max = -std::numeric_limits<float>::infinity();
  for (; i < logits.size(); ++i) max = logits[i] > max ? logits[i] : max;
  for (const float lane : lanes) max = lane > max ? lane : max;
  return std::min(max, std::numeric_limits<float>::max());
}

double SumExp(std::span<const float> logits, float max) {
  double lanes[kLanes] = {};
  const double shift = max;
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    const float* const x = &logits[i];
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += Weight(x[lane], shift);
  }
  for (size_t lane = 0; i < logits.size(); ++i, ++lane) lanes[lane] += Weight(logits[i], shift);
  return FoldLanes(lanes);
}

LogSoftmax::LogSoftmax(std::span<const float> logits) {
  const float max = MaxLogit(logits);
  max_ = max;
  log_sum_ = LogDouble(SumExp(logits, max));
}

double LogSoftmax::LogProbability(float logit) const {
  const double x = static_cast<double>(logit) - max_;
  if (!(x > -kInfinity) || max_ == -kInfinity) return -kInfinity;
  return (x > 0 ? 0 : x) - log_sum_;
}

double KlDivergence(std::span<const float> base, const LogSoftmax& of_base, std::span<const float> logits,
                    const LogSoftmax& of_logits) {
  if (of_base.max() == -kInfinity || of_logits.max() == -kInfinity) return kInfinity;
  // Σ w(i) · ((a(i) − max a) − (b(i) − max b)) / Σ w(i) − (log Σ a − log Σ b), with w = e^(a − max a).
  const auto term = [&](size_t i) {
    const double weight = Weight(base[i], of_base.max());
    const double a = std::min(static_cast<double>(base[i]) - of_base.max(), 0.0);
    const double below = static_cast<double>(logits[i]) - of_logits.max();
    const double b = below > -kInfinity ? std::min(below, 0.0) : -kInfinity;  // a NaN can't come either
    return weight > 0 ? weight * (a - b) : 0.0;
  };
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= base.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (size_t lane = 0; i < base.size(); ++i, ++lane) lanes[lane] += term(i);
  const double mean = FoldLanes(lanes) * ExpNonPositive(-of_base.log_sum());
  return std::max(0.0, mean - (of_base.log_sum() - of_logits.log_sum()));
}

size_t TopLogprobs(std::span<const float> logits, std::span<TokenLogprob> top) {
  // A heap of the best so far, its worst in front.
  size_t size = 0;
  for (size_t id = 0; id < logits.size() && !top.empty(); ++id) {
    const double logit = std::min(logits[id], std::numeric_limits<float>::max());
    const bool full = size == top.size();
    if (!(logit > (full ? top.front().logprob : -kInfinity))) continue;
    if (full) std::pop_heap(top.begin(), top.end(), Likelier);
    size += full ? 0 : 1;
    top[size - 1] = {static_cast<int32_t>(id), logit};
    std::push_heap(top.begin(), top.begin() + static_cast<std::ptrdiff_t>(size), Likelier);
  }
  const auto found = top.first(size);
  std::sort(found.begin(), found.end(), Likelier);
  const LogSoftmax softmax(logits);
  for (TokenLogprob& entry : found) entry.logprob = softmax.LogProbability(static_cast<float>(entry.logprob));
  return size;
}

}  // namespace sluice::sample
