// A model's shape from a Hugging Face config.json: enough to plan before the model is downloaded.
#pragma once

#include <string_view>

#include "base/result.h"
#include "quantize/synth_shape.h"

namespace sluice {

// Errors: those of convert::ParseJsonObject and ReadModelSizes; kUnsupported for a model_type that no shape
// describes, naming those that are; kCorrupt for sizes beyond what can be planned.
Result<quantize::SynthShape> ShapeOfConfig(std::string_view json);

}  // namespace sluice
