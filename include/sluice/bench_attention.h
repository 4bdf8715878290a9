// How fast attention runs alone, by context depth and KV type, on a cache of made-up keys and values: no
// weight is read. Decoding reads every visible key and value once, so memory is its roof, too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kv/cache.h"
#include "sluice/engine.h"
#include "sluice/model.h"

namespace sluice {

struct AttentionBenchOptions {
  std::vector<int64_t> depths = {512, 2048, 4096, 32768};  // visible tokens, the newest included
  int64_t prompt_tokens =
      64;  // the newest of them, read in one go for the prompt's figures (0: not measured)
  int repetitions = 5;
  bool roofs = true;  // measured too, in memory of their own
};

// One repetition. Each time is taken in both ways: scores stay within their tile, or all of them go through
// memory, as Fusion::kQkv and below have it.
struct AttentionSample {
  double seconds = 0, stored_seconds = 0;                // one token, all layers
  double prompt_seconds = 0, prompt_stored_seconds = 0;  // the prompt's rows, all layers
  double roof_bytes_per_second = 0;                      // mean of a reading right before and one right after
};

// One pair of types at one depth.
struct AttentionReport {
  kv::KvType k_type, v_type;
  int64_t depth = 0;
  std::string left_out;        // why there are no samples: the budget has no room for the cache
  uint64_t kv_bytes = 0;       // that one token's attention must read, all layers
  uint64_t scratch_bytes = 0;  // of all workers
  uint64_t score_bytes = 0;    // beside it, where one token's scores go through memory
  int64_t prompt_rows = 0;     // min(depth, prompt_tokens)
  std::vector<AttentionSample> samples;

  // Medians over the samples; ratios are medians of the samples' own ratios; 0 without samples.
  double seconds() const;
  double bytes_per_second() const;
  double share_of_roof() const;
  double stored_ratio() const;  // how many times as long a token takes where scores go through memory
  double prompt_seconds() const;
  double prompt_stored_ratio() const;
};

// For every depth and each of f16, q8_0, and q8_0 keys with q4_0 values, whatever the model's own context and
// types. Errors: kInvalidArgument for options out of range; kDoesNotFit where the roof's buffer does not fit;
// kInterrupted when `go_on` says so.
Result<std::vector<AttentionReport>> BenchAttention(const Engine& engine, const Model& model,
                                                    const AttentionBenchOptions& options,
                                                    const std::function<bool()>& go_on);

}  // namespace sluice
