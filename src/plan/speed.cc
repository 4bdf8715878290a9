#include "plan/speed.h"

#include <algorithm>
#include <limits>

namespace sluice::plan {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double Seconds(double work, double rate) { return work == 0 ? 0 : rate > 0 ? work / rate : kNever; }

}  // namespace

Speed EstimateSpeed(const ModelFacts& facts, const Plan& plan, const DeviceProfile& device) {
  double decode = 0, prefill = 0;  // seconds of weights: a pass for one token, and each token of a long batch
  for (const SweptType& type : facts.swept) {
    const TypeRate& rate = device.RateOf(type.dtype);
    decode += Seconds(static_cast<double>(type.bytes), kDecodeShare * rate.decode_bytes_per_second);
    prefill += Seconds(static_cast<double>(type.multiplications), rate.prefill_multiplications_per_second);
  }
  const double storage_rate = device.StorageFor(plan.store).bytes_per_second;
  const bool ring = plan.store.residency == Residency::kPin;
  const double storage = Seconds(static_cast<double>(plan.streamed_bytes),
                                 storage_rate * (ring ? kRingShare : kFreshMemoryShare));
  // The first pass brings all weights, into memory that is taken meanwhile: beside computing where some go
  // through the ring, before it where all stay. Where storage was not measured, and needn't be, nothing is
  // said of it.
  const double loading =
      storage_rate > 0 ? Seconds(static_cast<double>(facts.swept_bytes()), storage_rate * kFreshMemoryShare) : storage;
  // Half of the work of attention is on keys, half on values.
  const double rate =
      2 / (1 / device.AttentionRateOf(plan.kv.k_type) + 1 / device.AttentionRateOf(plan.kv.v_type));
  const double attention =
      Seconds(static_cast<double>(facts.attention_multiplications), rate);  // for each position held

  Speed speed;
  const int64_t prompt = std::min(kSpeedPrompt, plan.kv.context_length);
  speed.storage_seconds = storage;
  speed.compute_seconds = decode + attention * static_cast<double>(prompt);
  const double pass = std::max(speed.storage_seconds, speed.compute_seconds);
  double prompt_seconds = 0, first_token = 0;
  for (int64_t first = 0; first < prompt; first += plan.kv.batch) {
    const auto rows = static_cast<double>(std::min(plan.kv.batch, prompt - first));
    // However few the rows, the weights are read once.
    const double compute =
        std::max(rows * prefill, decode) + rows * attention * (static_cast<double>(first) + rows / 2);
    prompt_seconds += std::max(storage, compute);
    if (first == 0) {
      first_token += ring && plan.streamed_bytes > 0 ? std::max(loading, compute) : loading + compute;
    } else {
      first_token += std::max(storage, compute);
    }
  }
  if (!(pass < kNever && prompt_seconds < kNever)) return {};
  speed.decode_tokens_per_second = 1 / pass;
  speed.prefill_tokens_per_second = static_cast<double>(prompt) / prompt_seconds;
  speed.first_token_seconds = first_token;
  speed.answer_seconds = kSpeedAnswer * pass;
  return speed;
}

}  // namespace sluice::plan
