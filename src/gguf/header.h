// The header of one GGUF file: read from the front of a ByteSource, checked, and turned into Metadata and a
// tensor directory. Knows nothing of split files (reader.h).
//
// Nothing is allocated by a number that was not first compared with the bytes that are really there, and a
// header takes at most kMaxHeaderBytes. Docs: docs/gguf.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/dtype.h"
#include "gguf/byte_source.h"
#include "gguf/metadata.h"

namespace sluice::gguf {

inline constexpr uint64_t kMaxHeaderBytes = 64 << 20;
inline constexpr uint64_t kMaxKeys = 1 << 16;
inline constexpr uint64_t kMaxTensors = 1 << 17;
inline constexpr uint32_t kMaxDims = 4;

// One tensor of the directory.
struct Tensor {
  std::string_view name;                         // points into the Metadata of its file
  uint32_t type_id = 0;                          // as the file says it, perhaps unknown
  const formats::DTypeTraits* traits = nullptr;  // null for an unknown type
  uint32_t n_dims = 0;
  std::array<uint64_t, kMaxDims> dims{1, 1, 1, 1};  // [columns, rows, …]: the first varies fastest
  uint32_t shard = 0;                               // which file of a split model
  uint64_t offset = 0;                              // of its first byte, from the beginning of that file
  uint64_t size_bytes = 0;                          // 0 for an unknown type

  uint64_t columns() const { return dims[0]; }
  uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
  uint64_t elements() const { return columns() * rows(); }
};

// Something wrong with a file that can still be listed. kUnsupported: of concern only to whoever needs that
// tensor. Any other code: the file must not be used.
using Problem = Error;

struct Header {
  uint32_t version = 0;
  uint64_t alignment = 0;
  uint64_t file_bytes = 0;
  uint64_t data_offset = 0;  // where tensor data begins
  Metadata metadata;
  std::vector<Tensor> tensors;  // in the file's order
  std::vector<Problem> problems;
};

// Errors: kCorrupt and kUnsupported with the place and what was found; what ReadAt returned.
Result<Header> ReadHeader(const ByteSource& source);

// The key that sets the alignment of tensor data, and its default.
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr uint32_t kDefaultAlignment = 32;

}  // namespace sluice::gguf
