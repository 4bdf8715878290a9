// DType: every weight format that current GGUF files use, and its sizes.
//
// The enum's values are GGUF's own type ids (source: the GGUF specification and ggml's type list). Ids that
// are not listed here are unknown: FindDType returns null for them, and nothing indexes a table with an
// unchecked id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::formats {

enum class DType : uint8_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};
inline constexpr size_t kDTypeLimit = 43;  // one past the largest id: the size of tables indexed by DType

struct DTypeTraits {
  DType dtype;
  std::string_view name;  // as people write it: "Q4_K", "IQ2_XXS", "F16"
  uint32_t block_length;  // elements in a block; rows are whole blocks
  uint32_t block_bytes;
};

// Null for an id that no current GGUF file format defines (retired and fork-only ids included).
const DTypeTraits* FindDType(uint32_t id);
const DTypeTraits* FindDTypeByName(std::string_view name);  // case-insensitive; null when unknown
const DTypeTraits& Traits(DType dtype);
inline std::string_view Name(DType dtype) { return Traits(dtype).name; }
std::span<const DTypeTraits> AllDTypes();

// Bytes of a row of `columns` elements; columns must be a multiple of the block length.
inline uint64_t RowBytes(DType dtype, uint64_t columns) {
  const DTypeTraits& traits = Traits(dtype);
  return columns / traits.block_length * traits.block_bytes;
}

}  // namespace sluice::formats
