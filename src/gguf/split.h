// Splitting: a model in parts of a bounded size, as GGUF programs know them: NAME-00001-of-00003.gguf and so
// on. The first has the metadata. (Whole again: repack.h.)
//
// What holds for repacking holds here: streamed, checksums kept and compared, one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/byte_sink.h"
#include "gguf/reader.h"
#include "gguf/repack.h"

namespace sluice::gguf {

// Whole tensors in the source's order.
struct Part {
  std::vector<const Tensor*> tensors;
  uint64_t file_bytes = 0;
};
inline constexpr size_t kMostParts = 512;

// Parts of at most `max_file_bytes`, each with as many tensors as it holds; the first has none if the
// metadata leaves no room. Errors: kInvalidArgument when the metadata or a tensor alone is larger than a
// part, or when it takes more than kMostParts.
Result<std::vector<Part>> PlanParts(const GgufFile& source, uint64_t max_file_bytes);

// Opens part `index` of `count`, told its size.
using PartOpener =
    std::function<Result<std::unique_ptr<ByteSink>>(size_t index, size_t count, uint64_t file_bytes)>;

// None of the parts gets its name before all are written. Errors: as Repack.
Result<RepackReport> Split(const GgufFile& source, const std::vector<Part>& parts,
                           const CopyProgress& progress, const PartOpener& open);

// Into PREFIX-00001-of-0000N.gguf and so on. Also refuses, before anything is written: names that are taken
// (kInvalidArgument: a model that is half old and half new might load), and too little room for all of the
// parts (kIo).
Result<RepackReport> SplitFile(const GgufFile& source, uint64_t max_file_bytes, const CopyProgress& progress,
                               const std::string& prefix);

}  // namespace sluice::gguf
