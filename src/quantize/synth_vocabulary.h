// A made-up vocabulary of any size that really works: all bytes, the special tokens at their real ids, common
// pairs of letters, and unused tokens for the rest. Text goes in and comes out whole; nothing more is claimed
// of it.
#pragma once

#include "base/result.h"
#include "gguf/metadata.h"
#include "quantize/synth_shape.h"

namespace sluice::quantize {

// Sets the tokenizer.* keys. Error: kInvalidArgument when the shape's vocabulary is too small.
Status SetSyntheticVocabulary(const SynthShape& shape, gguf::Metadata& metadata);

}  // namespace sluice::quantize
