#include "sample/options.h"

#include <cmath>
#include <limits>

namespace sluice::sample {
namespace {

constexpr double kAnyDouble = std::numeric_limits<double>::max();
constexpr int64_t kAnyInteger = std::numeric_limits<int64_t>::max();
constexpr size_t kMaxBreakers = 64;
constexpr size_t kMaxBreakerBytes = 128;

struct NumberRule {
  const char* name;
  double SamplerOptions::*field;
  double low, high;
};
constexpr NumberRule kNumbers[] = {
    {"temperature", &SamplerOptions::temperature, 0, kAnyDouble},
    {"top_p", &SamplerOptions::top_p, 0, kAnyDouble},
    {"min_p", &SamplerOptions::min_p, 0, kAnyDouble},
    {"typical_p", &SamplerOptions::typical_p, 0, kAnyDouble},
    {"repeat_penalty", &SamplerOptions::repeat_penalty, 0.001, 1000},
    {"presence_penalty", &SamplerOptions::presence_penalty, -1000, 1000},
    {"frequency_penalty", &SamplerOptions::frequency_penalty, -1000, 1000},
    {"dry_multiplier", &SamplerOptions::dry_multiplier, 0, 1000},
    {"dry_base", &SamplerOptions::dry_base, 1, 1000},
};

struct IntegerRule {
  const char* name;
  int64_t SamplerOptions::*field;
  int64_t low;
};
constexpr IntegerRule kIntegers[] = {
    {"top_k", &SamplerOptions::top_k, -kAnyInteger - 1},
    {"repeat_last_n", &SamplerOptions::repeat_last_n, -1},
    {"dry_allowed_length", &SamplerOptions::dry_allowed_length, 1},
    {"dry_penalty_last_n", &SamplerOptions::dry_penalty_last_n, -1},
};

Status CheckNumber(const SamplerOptions& options, const NumberRule& rule) {
  const double value = options.*rule.field;
  if (value >= rule.low && value <= rule.high) return {};
  if (rule.high == kAnyDouble)
    return Fail(ErrorCode::kInvalidArgument, "{} is {}; expected a number from {} on", rule.name, value,
                rule.low);
  return Fail(ErrorCode::kInvalidArgument, "{} is {}; expected a number from {} to {}", rule.name, value,
              rule.low, rule.high);
}

Status CheckInteger(const SamplerOptions& options, const IntegerRule& rule) {
  const int64_t value = options.*rule.field;
  if (value >= rule.low) return {};
  return Fail(ErrorCode::kInvalidArgument, "{} is {}; expected {} or more", rule.name, value, rule.low);
}

Status CheckBreakers(const std::vector<std::string>& breakers) {
  if (breakers.size() > kMaxBreakers)
    return Fail(ErrorCode::kInvalidArgument, "dry_sequence_breakers holds {} strings; at most {} are allowed",
                breakers.size(), kMaxBreakers);
  for (size_t i = 0; i < breakers.size(); ++i) {
    if (breakers[i].empty() || breakers[i].size() > kMaxBreakerBytes)
      return Fail(ErrorCode::kInvalidArgument, "dry_sequence_breakers[{}] has {} bytes; expected 1 to {}", i,
                  breakers[i].size(), kMaxBreakerBytes);
  }
  return {};
}

}  // namespace

Status Validate(const SamplerOptions& options, int64_t vocab_size) {
  for (const NumberRule& rule : kNumbers) SLUICE_TRY(CheckNumber(options, rule));
  for (const IntegerRule& rule : kIntegers) SLUICE_TRY(CheckInteger(options, rule));
  SLUICE_TRY(CheckBreakers(options.dry_sequence_breakers));
  for (size_t i = 0; i < options.logit_bias.size(); ++i) {
    const auto [id, bias] = options.logit_bias[i];
    if (id < 0 || id >= vocab_size)
      return Fail(ErrorCode::kInvalidArgument, "logit_bias[{}] names token {}; expected 0 to {}", i, id,
                  vocab_size - 1);
    if (std::isnan(bias))
      return Fail(ErrorCode::kInvalidArgument, "logit_bias[{}], of token {}, is NaN", i, id);
  }
  return {};
}

SamplerOptions DefaultOptions(const GenerationDefaults& file, std::vector<std::string>* ignored) {
  SamplerOptions options;
  const auto take = [&](auto SamplerOptions::*field, const auto& suggestion) {
    if (!suggestion) return;
    SamplerOptions trial = options;
    trial.*field = *suggestion;
    if (const Status valid = Validate(trial, 0)) {
      options = std::move(trial);
    } else {
      ignored->push_back(valid.error().message);
    }
  };
  take(&SamplerOptions::temperature, file.temperature);
  take(&SamplerOptions::top_k, file.top_k);
  take(&SamplerOptions::top_p, file.top_p);
  take(&SamplerOptions::min_p, file.min_p);
  take(&SamplerOptions::repeat_penalty, file.repeat_penalty);
  take(&SamplerOptions::repeat_last_n, file.repeat_last_n);
  return options;
}

}  // namespace sluice::sample
