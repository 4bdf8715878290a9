// A model file on disk as a ByteSource.
#pragma once

#include <memory>
#include <string>

#include "gguf/byte_source.h"

namespace sluice::gguf {

// Errors: those of platform::File::Open. The size is taken once: a file that shrinks later makes reads fail.
Result<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path);

}  // namespace sluice::gguf
