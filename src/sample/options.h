// What a user may ask of the sampler, how odd values are answered, and what a model file may suggest
// (docs/sampling.md). Plain data; numbers are as wide as JSON's, so that whoever reads a request passes them
// on unchanged and no conversion can go wrong before they are checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::sample {

struct LogitBias {
  int64_t id;
  double bias;  // added to the logit; ±infinity forbids or forces the token
};

// Names and meanings are those of llama.cpp and the OpenAI API.
struct SamplerOptions {
  double temperature = 0.8;  // 0 = greedy: always the likeliest token, whatever the filters say
  int64_t top_k = 0;         // 0 or less = off
  double top_p = 0.95;       // 1 or more = off; 0 = the likeliest token only
  double min_p = 0.05;       // 0 = off
  double typical_p = 1;      // 1 or more = off

  // The next three look at the last `repeat_last_n` tokens, prompt included.
  int64_t repeat_last_n = 64;    // 0 = off, −1 = the whole context
  double repeat_penalty = 1;     // 1 = off
  double presence_penalty = 0;   // 0 = off
  double frequency_penalty = 0;  // 0 = off

  // DRY: against repeating whole runs of tokens.
  double dry_multiplier = 0;  // 0 = off
  double dry_base = 1.75;
  int64_t dry_allowed_length = 2;
  int64_t dry_penalty_last_n = -1;  // 0 = off, −1 = the whole context
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};

  std::vector<LogitBias> logit_bias;

  // None: whoever makes the sampler draws one from the system and tells the user which.
  std::optional<uint64_t> seed;
};

// Checks every field. Errors: kInvalidArgument, naming the field, the value and what is allowed. No number is
// left that the sampler can't take: NaN and infinities (but for biases) are refused, token ids must be below
// `vocab_size`. Values that merely go too far are taken as the nearest that makes sense: a top_k above the
// vocabulary, windows above the context, min_p above 1, temperatures outside 10^−6 … 10^6.
Status Validate(const SamplerOptions& options, int64_t vocab_size);

// What a model file may suggest, from the GGUF keys named beside each field. Other keys of that family
// (sequence, xtc_*, mirostat*) ask for what Sluice doesn't do and are left alone.
struct GenerationDefaults {
  std::optional<double> temperature;     // general.sampling.temp
  std::optional<int64_t> top_k;          // general.sampling.top_k
  std::optional<double> top_p;           // general.sampling.top_p
  std::optional<double> min_p;           // general.sampling.min_p
  std::optional<double> repeat_penalty;  // general.sampling.penalty_repeat
  std::optional<int64_t> repeat_last_n;  // general.sampling.penalty_last_n
};

// The options that hold until the user says otherwise: the file's own where it has them, else those above. A
// value that Validate would refuse is not taken; its error message is appended to *ignored.
SamplerOptions DefaultOptions(const GenerationDefaults& file, std::vector<std::string>* ignored);

}  // namespace sluice::sample
