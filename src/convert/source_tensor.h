// SourceTensor: one tensor of a checkpoint, as its files hold it, and how its elements become floats.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::convert {

// Types of elements, by the names that safetensors gives them; floats first.
enum class ElementType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool
};

std::optional<ElementType> ElementTypeByName(std::string_view name);  // "F32", "BF16", "F8_E4M3" …
std::string_view Name(ElementType type);
uint64_t ElementBytes(ElementType type);
bool IsFloat(ElementType type);

// Elements as floats, exactly where a float can hold them. `bytes`: out.size() elements.
// F8_E4M3 has no infinities and one NaN (the "FN" variant of Micikevicius et al., arXiv 2209.05433); F8_E5M2
// is the upper half of an f16.
void ToFloats(ElementType type, std::span<const std::byte> bytes, std::span<float> out);

struct SourceTensor {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<uint64_t> shape;  // the last varies fastest
  uint32_t file = 0;            // of the checkpoint
  uint64_t offset = 0;          // in that file
  uint64_t size_bytes = 0;

  uint64_t elements() const { return size_bytes / ElementBytes(type); }
  // As a matrix: the last dimension is a row, all others count rows.
  uint64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  uint64_t rows() const { return columns() == 0 ? 0 : elements() / columns(); }
};

}  // namespace sluice::convert
