// The files of a model, opened to read weights from.
#pragma once

#include "base/result.h"
#include "gguf/reader.h"
#include "platform/file.h"

namespace sluice::weights {

// Errors: those of File::Open; kCorrupt when the file is not the size that it had when its header was read.
Result<platform::File> OpenShard(const gguf::Shard& shard, platform::File::Caching caching);

}  // namespace sluice::weights
