#include "convert/source_tensor.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/half.h"

namespace sluice::convert {

namespace {

struct Traits {
  std::string_view name;
  uint64_t bytes;
};
// By ElementType.
constexpr Traits kTraits[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
                              {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U8", 1},      {"BOOL", 1}};

float F8E4M3ToF32(uint8_t byte) {
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  const float sign = byte & 0x80 ? -1.0f : 1.0f;
  if ((byte & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * static_cast<float>(mantissa) * 0x1p-9f;
  return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

template <typename Stored, typename F>
void Each(std::span<const std::byte> bytes, std::span<float> out, F&& convert) {
  SLUICE_CHECK(bytes.size() == out.size() * sizeof(Stored));
  for (size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = convert(value);
  }
}

template <typename Stored>
void Cast(std::span<const std::byte> bytes, std::span<float> out) {
  Each<Stored>(bytes, out, [](Stored value) { return static_cast<float>(value); });
}

}  // namespace

std::optional<ElementType> ElementTypeByName(std::string_view name) {
  for (size_t i = 0; i < std::size(kTraits); ++i) {
    if (kTraits[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

std::string_view Name(ElementType type) { return kTraits[static_cast<size_t>(type)].name; }
uint64_t ElementBytes(ElementType type) { return kTraits[static_cast<size_t>(type)].bytes; }
bool IsFloat(ElementType type) { return type < ElementType::kI64; }

void ToFloats(ElementType type, std::span<const std::byte> bytes, std::span<float> out) {
  switch (type) {
    case ElementType::kF64:
      return Cast<double>(bytes, out);
    case ElementType::kF32:
      return Cast<float>(bytes, out);
    case ElementType::kF16:
      return Each<uint16_t>(bytes, out, F16ToF32);
    case ElementType::kBF16:
      return Each<uint16_t>(bytes, out, Bf16ToF32);
    case ElementType::kF8E4M3:
      return Each<uint8_t>(bytes, out, F8E4M3ToF32);
    case ElementType::kF8E5M2:
      return Each<uint8_t>(bytes, out,
                           [](uint8_t byte) { return F16ToF32(static_cast<uint16_t>(byte << 8)); });
    case ElementType::kI64:
      return Cast<int64_t>(bytes, out);
    case ElementType::kI32:
      return Cast<int32_t>(bytes, out);
    case ElementType::kI16:
      return Cast<int16_t>(bytes, out);
    case ElementType::kI8:
      return Cast<int8_t>(bytes, out);
    case ElementType::kU8:
      return Cast<uint8_t>(bytes, out);
    case ElementType::kBool:
      return Cast<uint8_t>(bytes, out);
  }
}

}  // namespace sluice::convert
