// What tells one model file from another without reading all of it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/model.h"

namespace sluice::session {

// A hash of the header as it is in effect (overrides included), the sizes of the files, and the first 4 KiB
// of every tensor. Not for security: somebody who wants two files to look alike can have it. Errors: kIo.
Result<uint64_t> Fingerprint(const model::Model& model);

}  // namespace sluice::session
