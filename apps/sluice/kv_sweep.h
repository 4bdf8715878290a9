// `sluice eval --kv-sweep`: what each pair of KV types costs in quality and saves in memory, side by side.
#pragma once

#include <optional>

#include "measures.h"
#include "options.h"
#include "sluice/result.h"

namespace sluice::app {

struct KvSweepFlags {
  TextFlags text;           // no file: no perplexity
  QuestionFlags questions;  // no file: no accuracy
  bool json = false;
};

// Measures every pair and prints a table, or one JSON object. `options` says the rest: context, batch. The
// text's predictions are compared with `base`, or with those of the first pair when there is none.
Result<int> SweepKvTypes(const KvSweepFlags& flags, const OpenedModel& opened,
                         const ConversationOptions& options, std::optional<eval::BaseRunReader> base);

}  // namespace sluice::app
