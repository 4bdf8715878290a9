// Byte sizes and other quantities as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kGiB = 1024 * kMiB;

// "8G", "512M", "1.5GiB", "4096": powers of 1024, suffixes K, M, G, T (optionally followed by B or iB, any
// case). Errors: kInvalidArgument for anything else, for negative numbers and for more than 2^63 bytes.
Result<uint64_t> ParseSize(std::string_view text);

// 8589934592 → "8.00 GiB", 700 → "700 B". Three significant digits, powers of 1024.
std::string FormatBytes(uint64_t bytes);

// 32763876352 → "32.8B", 5767168 → "5.77M": counts, powers of 1000.
std::string FormatCount(uint64_t count);

// a * b and a + b; false when the true result does not fit in 64 bits.
[[nodiscard]] inline bool CheckedMultiply(uint64_t a, uint64_t b, uint64_t* result) {
  return !__builtin_mul_overflow(a, b, result);
}
[[nodiscard]] inline bool CheckedAdd(uint64_t a, uint64_t b, uint64_t* result) {
  return !__builtin_add_overflow(a, b, result);
}

// The smallest multiple of `alignment` (a power of two) that is ≥ value. value + alignment must not wrap.
constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace sluice
