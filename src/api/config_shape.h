// A model's shape from a Hugging Face config.json: enough to plan before the model is downloaded.
#pragma once

#include <string_view>

#include "base/result.h"
#include "quantize/synth_shape.h"

namespace sluice {

// Errors: kCorrupt for text that is no JSON object, or a key that is missing, of the wrong type or out of
// range; kUnsupported for a model_type that no shape describes, naming those that are.
Result<quantize::SynthShape> ShapeOfConfig(std::string_view json);

}  // namespace sluice
