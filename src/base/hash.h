// A 64-bit hash for golden values and fingerprints: FNV-1a over bytes. Same on every machine; not for security.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

inline constexpr uint64_t kHashSeed = 0xcbf29ce484222325ull;

inline uint64_t HashBytes(std::span<const std::byte> bytes, uint64_t hash = kHashSeed) {
  for (const std::byte b : bytes) hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001b3ull;
  return hash;
}

// Hashes floats by their bits, all NaNs alike.
inline uint64_t HashFloats(std::span<const float> values, uint64_t hash = kHashSeed) {
  for (const float value : values) {
    const float canonical = value == value ? value : __builtin_nanf("");
    hash = HashBytes(std::as_bytes(std::span(&canonical, 1)), hash);
  }
  return hash;
}

}  // namespace sluice
