// The tensors of a model in the order in which it reads them (docs/streaming.md), to write files whose
// streamed reads follow one another.
//
// A pure function; any thread.
#pragma once

#include <vector>

#include "base/result.h"
#include "gguf/reader.h"

namespace sluice::model {

// Every tensor of the file once: first the vectors, which are read when a model is opened, then the
// embeddings, then the matrices of a pass as its schedule has them, the output last. Errors: kUnsupported for
// a family that this program does not run; those of ReadConfig and BindDirectory.
Result<std::vector<const gguf::Tensor*>> ReadingOrder(const gguf::GgufFile& file);

}  // namespace sluice::model
