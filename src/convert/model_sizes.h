// ModelSizes: which family a config.json is of, and how large the model is. The one place that knows what
// these settings are called; conversion (hyperparameters.h) reads the rest on top of it, planning needs no
// more.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "convert/family.h"
#include "convert/json_file.h"
#include "convert/row_order.h"

namespace sluice::convert {

inline constexpr int64_t kMaxWidth = 1 << 20;
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxHeads = 4096;
inline constexpr int64_t kMaxContext = 1 << 30;  // tokens

struct ModelSizes {
  const Family* family = nullptr;
  JsonObject config;             // of the language model: the whole file, or its text_config
  bool has_other_parts = false;  // that see or hear
  int64_t layers = 0, d_model = 0, d_ff = 0;
  Heads heads;
  bool states_head_width = false;         // else it follows from d_model
  std::optional<int64_t> context_length;  // tokens; unset where neither file nor family say
  std::optional<int64_t> sliding_window;  // tokens, of families whose layers slide
  bool tied = false;                      // no output matrix of its own
};

// A view of `whole`'s JSON, that outlives it. Errors: kUnsupported for a model type that is not known, naming
// those that are; kNotFound, kCorrupt naming the key.
Result<ModelSizes> ReadModelSizes(const JsonObject& whole);

}  // namespace sluice::convert
