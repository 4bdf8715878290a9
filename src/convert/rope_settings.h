// RopeSettings: how queries and keys are turned, from either schema of config.json: rope_theta beside
// rope_scaling, or rope_parameters with everything.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "convert/architecture_keys.h"
#include "convert/json_file.h"

namespace sluice::convert {

struct RopeSettings {
  double base = 10000;
  std::optional<double> sliding_base;
  double share = 1;                   // of a head that turns
  std::optional<JsonObject> scaling;  // with a type other than "default"
  std::string type = "default";
};

// Errors: kCorrupt naming the key.
Result<RopeSettings> ReadRope(const JsonObject& config);

// A small tensor that comes from config.json.
struct ComputedTensor {
  std::string name;
  std::vector<float> values;
};

// Sets the rope keys of a model whose heads have `head_dim` numbers; tables of factors become tensors, and
// what GGUF has no key for a warning. Errors: kUnsupported for a scaling that is not known; kNotFound,
// kCorrupt naming the key.
Status WriteRope(const JsonObject& config, const RopeSettings& rope, int64_t head_dim, ArchitectureKeys& keys,
                 std::vector<ComputedTensor>& tensors, std::vector<std::string>& warnings);

}  // namespace sluice::convert
