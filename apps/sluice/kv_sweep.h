// `sluice eval --kv-sweep`: what each pair of KV types costs in quality and saves in memory, side by side.
#pragma once

#include "measures.h"
#include "sluice/engine.h"
#include "sluice/result.h"

namespace sluice::app {

struct KvSweepFlags {
  std::string text_file;    // empty: no perplexity
  QuestionFlags questions;  // no file: no accuracy
  bool json = false;
};

// Measures every pair and prints a table, or one JSON object. `options` says the rest: context, batch.
Result<int> SweepKvTypes(const KvSweepFlags& flags, const Engine& engine, std::shared_ptr<const Model> model,
                         const ConversationOptions& options);

}  // namespace sluice::app
