// Repacking: the tensors and metadata of a model in another file, in another order and alignment. No weight
// changes.
//
// Data streams through in pieces. The checksums of all tensors are kept in the metadata that is written
// (checksums.h); those that the source has are compared on the way, so that what was damaged is not handed
// on. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/byte_sink.h"
#include "gguf/reader.h"
#include "gguf/tensor_copier.h"

namespace sluice::gguf {

struct RepackOptions {
  uint32_t alignment = 0;            // of tensor data, a power of two; 0: as the metadata says it
  std::vector<const Tensor*> order;  // the source's tensors, each of them once; empty: as they are there
  CopyProgress progress;
};

struct RepackReport {
  uint64_t tensors = 0;
  uint64_t file_bytes = 0;  // of all files written
  uint64_t files = 1;
  bool compared = false;  // with checksums that the source had
};

// All of a model, perhaps a split one, in one file, with this metadata in place of the source's. Errors:
// kUnsupported for a tensor of unknown type; those of TensorCopier, `open` and writing.
Result<RepackReport> Repack(const GgufFile& source, Metadata metadata, const RepackOptions& options,
                            const SinkOpener& open);

// From file to file. Also refuses to write over any of the source's files.
Result<RepackReport> RepackFile(const GgufFile& source, Metadata metadata, const RepackOptions& options,
                                const std::string& output);

}  // namespace sluice::gguf
