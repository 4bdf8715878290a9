// Hyperparameters: config.json → the keys of a GGUF file, and the tables of rope factors that GGUF holds as
// tensors.
//
// Both schemas of rope settings give the same: rope_theta beside rope_scaling, and rope_parameters with
// everything.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "convert/family.h"
#include "convert/json_file.h"
#include "convert/rope_settings.h"
#include "convert/row_order.h"
#include "gguf/metadata.h"

namespace sluice::convert {

struct Hyperparameters {
  const Family* family = nullptr;
  Heads heads;
  bool tied = false;             // no output matrix of its own
  bool has_other_parts = false;  // that see or hear
  std::vector<ComputedTensor> tensors;
  std::vector<std::string> warnings;  // what GGUF can't say, each one sentence
};

// Sets general.architecture and all of its keys. Errors: kUnsupported for a model type that is not converted,
// or settings that this family's GGUF has no key for and that would change the output; kNotFound, kCorrupt
// naming the key.
Result<Hyperparameters> ReadHyperparameters(const JsonObject& config, gguf::Metadata& metadata);

}  // namespace sluice::convert
