// The header of one GGUF file: read from the front of a ByteSource, checked, and turned into Metadata and a
// tensor directory. Knows nothing of split files (reader.h).
//
// Nothing is allocated by a number that was not first compared with the bytes that are really there, and a
// header takes at most kMaxHeaderBytes. Docs: docs/gguf.md.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gguf/byte_source.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"

namespace sluice::gguf {

inline constexpr uint64_t kMaxHeaderBytes = 64 << 20;
inline constexpr uint64_t kMaxKeys = 1 << 16;
inline constexpr uint64_t kMaxTensors = 1 << 17;
inline constexpr size_t kMaxProblems = 100;

// Something wrong with a file that can still be listed. kUnsupported: of concern only to whoever needs that
// tensor. Any other code: the file must not be used.
using Problem = Error;

struct Header {
  uint32_t version = 0;
  uint64_t alignment = 0;
  uint64_t file_bytes = 0;
  uint64_t data_offset = 0;  // where tensor data begins
  Metadata metadata;
  std::vector<Tensor> tensors;    // in the file's order
  std::vector<Problem> problems;  // the first kMaxProblems, the worse ones first
};

// Errors: kCorrupt and kUnsupported with the place and what was found; what ReadAt returned.
Result<Header> ReadHeader(const ByteSource& source);

// The key that sets the alignment of tensor data, and its default.
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr uint32_t kDefaultAlignment = 32;

// The keys of a part of a split model: which it is, of how many, and the tensors in all of them.
inline constexpr std::string_view kSplitNo = "split.no";
inline constexpr std::string_view kSplitCount = "split.count";
inline constexpr std::string_view kSplitTensors = "split.tensors.count";

}  // namespace sluice::gguf
