// ArchitectureKeys: writes the keys that a GGUF file has under its architecture's name ("llama.block_count").
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "gguf/metadata.h"

namespace sluice::convert {

// A view of metadata that outlives it.
class ArchitectureKeys {
 public:
  ArchitectureKeys(std::string_view architecture, gguf::Metadata& metadata)
      : architecture_(architecture), metadata_(metadata) {}
  void U32(std::string_view key, int64_t value) { metadata_.SetU32(Of(key), static_cast<uint32_t>(value)); }
  void F32(std::string_view key, double value) { metadata_.SetF32(Of(key), static_cast<float>(value)); }
  void Bool(std::string_view key, bool value) { metadata_.SetBool(Of(key), value); }
  void String(std::string_view key, std::string_view value) { metadata_.SetString(Of(key), value); }

 private:
  std::string Of(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }
  std::string architecture_;
  gguf::Metadata& metadata_;
};

}  // namespace sluice::convert
