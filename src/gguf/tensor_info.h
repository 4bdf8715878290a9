// Tensor: one line of a GGUF file's tensor directory.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "formats/dtype.h"

namespace sluice::gguf {

inline constexpr uint32_t kMaxDims = 4;
inline constexpr size_t kMaxTensorNameBytes = 1024;
inline constexpr size_t kMaxKeyBytes = 65535;

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

// Names of tensors and metadata keys stand in messages and listings, so they must not be endless or hold
// control characters. Error: kCorrupt; it does not repeat the label.
Status CheckLabel(std::string_view label, size_t max_bytes);

// Fills in size_bytes from dims and traits, with every product checked: whatever comes later may multiply
// freely. Error: kCorrupt, naming the tensor, for a dimension of 0, rows that are no whole blocks, or
// products too large.
Status ComputeSize(Tensor& tensor);

}  // namespace sluice::gguf
