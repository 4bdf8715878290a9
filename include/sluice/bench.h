// Speed, measured beside the machine's own roofs.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sluice/conversation.h"
#include "sluice/engine.h"
#include "sluice/model.h"
#include "sluice/stats.h"
#include "sluice/trace.h"

namespace sluice {

struct BenchOptions {
  int64_t prompt_tokens = 512;  // read in one go (0: not measured)
  int64_t decode_tokens = 64;   // one by one (0: not measured)
  int64_t depth = 0;            // tokens that are already held when decoding begins
  int repetitions = 5;
  bool roofs = true;               // measured too, in memory of their own
  Trace* trace = nullptr;          // that the passes are written down in
  session::ReadProgress progress;  // of the first pass, which loads the weights
  ConversationOptions conversation;
};

// The context that these options take.
int64_t BenchContext(const BenchOptions& options);

// What Bench takes of the budget beside the conversation, at least: a buffer for the roof.
inline constexpr uint64_t kBenchReserveBytes = 256 << 20;

// One repetition, beside the roof that bounds it: the mean of a reading right before and one right after.
struct BenchSample {
  double tokens_per_second = 0;
  double roof_bytes_per_second = 0;  // of decoding: how fast memory reads
  double int8_macs_per_second = 0;   // of prefill: how fast the processor multiplies
};

struct BenchReport {
  std::vector<BenchSample> prefill, decode;
  uint64_t weight_bytes_per_token = 0;
  uint64_t multiplications_per_token = 0;  // multiply-adds in the weight matrices
  std::string_view roof_pattern;
  WorkFigures decoding;  // all repetitions together
  Stats stats;  // at the end, with model and conversation, the roofs' buffer under reserve

  // Medians over the samples; 0 without samples.
  double prefill_tokens_per_second() const;
  double decode_tokens_per_second() const;
  double decode_bytes_per_second() const;  // of weights
  double roof_bytes_per_second() const;    // beside decoding
  double decode_share_of_roof() const;     // median of the samples' own ratios
  double prefill_macs_per_second() const;
  double int8_macs_per_second() const;   // beside prefill
  double prefill_share_of_peak() const;  // median of the samples' own ratios
};

// What each level of fused operators costs: medians over the repetitions, which go round the levels in turn.
struct FusionReport {
  runtime::Fusion fusion = runtime::Fusion::kAll;
  uint64_t activation_bytes = 0;  // all that a conversation takes for its activations: their peak
  double prefill_seconds = 0;     // of reading the prompt
  double decode_seconds = 0;      // of one token
};

// For every level. The model was opened with room for Fusion::kNone. Errors: as Bench.
Result<std::vector<FusionReport>> BenchFusion(const Engine& engine, std::shared_ptr<const Model> model,
                                              const BenchOptions& options,
                                              const std::function<bool()>& go_on);

// Errors: kDoesNotFit when model, context and the roof's buffer are more than the budget; kInterrupted when
// `go_on` says so.
Result<BenchReport> Bench(const Engine& engine, std::shared_ptr<const Model> model,
                          const BenchOptions& options, const std::function<bool()>& go_on);

}  // namespace sluice
