// Rows of the KV cache: one head's key or value at one position, in each type that attention reads.
//
// The quantised types are the weight formats of the same name (formats/blocks.h): blocks of 32 elements with
// an f16 scale. A head size that is no multiple of 32 fills its last block up with zeros, so each row starts
// on a block and heads never share one. Encoding is plain code that all tables share: the same bits
// everywhere, and its time is lost beside the products that made the row. Functions are pure: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/kernels.h"

namespace sluice::kernels {

// "f32", "f16", "q8_0", "q5_0", "q4_0".
std::string_view Name(KvType type);
std::optional<KvType> KvTypeByName(std::string_view name);
// The names above, for messages: "f32, f16, …".
std::string_view KvTypeNames();

// Bytes of a row of n elements.
constexpr size_t KvRowBytes(KvType type, int64_t n) {
  const auto blocks = static_cast<size_t>((n + 31) / 32);
  switch (type) {
    case KvType::kF32:
      return static_cast<size_t>(n) * 4;
    case KvType::kF16:
      return static_cast<size_t>(n) * 2;
    case KvType::kQ8_0:
      return blocks * 34;
    case KvType::kQ5_0:
      return blocks * 22;
    case KvType::kQ4_0:
      return blocks * 18;
  }
  return 0;
}

// x[n] → KvRowBytes(type, n) bytes at `row`, any alignment. docs/arithmetic.md, "Rows of the KV cache".
void StoreKvRow(const Kernels& kernels, KvType type, const float* x, int64_t n, std::byte* row);
// And back, exactly what attention reads.
void LoadKvRow(KvType type, const std::byte* row, int64_t n, float* x);

}  // namespace sluice::kernels
