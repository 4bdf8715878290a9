// Checksums of a model, kept in its metadata (of the first part of a split one):
//   sluice.checksum.algorithm  "xxh64"
//   sluice.checksum.tensors    u64 for each tensor: of its bytes, in the directory's order, part after part
//   sluice.checksum.model      u64: of metadata, and of every tensor's name, type, shape and checksum
// None of them depends on where in which file a tensor lies: splitting, merging and another alignment leave
// them as they are. The model's leaves out keys that say how files are laid out and who wrote them.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"

namespace sluice::gguf {

struct Checksums {
  std::vector<uint64_t> tensors;
  uint64_t model = 0;
};

// Nothing where the metadata has none. Errors: kUnsupported for another algorithm; kCorrupt for keys that
// don't fit the `tensor_count` tensors.
Result<std::optional<Checksums>> ReadChecksums(const Metadata& metadata, uint64_t tensor_count);

// Replaces the keys, or adds them; their size depends on the number of tensors alone.
void SetChecksums(const Checksums& checksums, Metadata& metadata);

// Removes them: they say nothing of another file.
void RemoveChecksums(Metadata& metadata);

// Checksums::model of these. The tensors' checksums are in the order of `tensors`.
uint64_t ModelChecksum(const Metadata& metadata, std::span<const Tensor> tensors,
                       std::span<const uint64_t> tensor_checksums);

// Errors: kCorrupt, naming the tensor, when they differ.
Status CompareChecksum(std::string_view tensor, uint64_t found, uint64_t expected);

}  // namespace sluice::gguf
