#include "formats/decode.h"

#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "formats/unpack.h"

namespace sluice::formats {
namespace {

void DecodeBlocks(DType dtype, const std::byte* blocks, std::span<float> out) {
  const DTypeTraits& traits = Traits(dtype);
  const UnpackFn unpack = UnpackerFor(dtype);
  UnpackedBlock block;
  for (size_t begin = 0; begin < out.size(); begin += traits.block_length, blocks += traits.block_bytes) {
    unpack(blocks, block);
    for (uint32_t i = 0; i < traits.block_length; i += kGroupLength) {
      const float step = block.d * static_cast<float>(block.scales[i / kGroupLength]);
      const float offset = block.dmin * static_cast<float>(block.mins[i / kGroupLength]);
      for (uint32_t j = i; j < i + kGroupLength; ++j) {
        // Without a minimum, offset is +0, and x − 0 is x for every x, −0 included.
        out[begin + j] = step * static_cast<float>(block.codes[j]) - offset;
      }
    }
  }
}

template <typename Stored, typename Convert>
void DecodeElements(const std::byte* elements, std::span<float> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, elements + i * sizeof(Stored), sizeof(Stored));
    out[i] = convert(value);
  }
}

constexpr auto kToFloat = [](auto value) { return static_cast<float>(value); };

}  // namespace

void DecodeRow(DType dtype, const std::byte* blocks, std::span<float> out) {
  SLUICE_CHECK(out.size() % Traits(dtype).block_length == 0);
  switch (dtype) {
    case DType::kF32:
      return DecodeElements<float>(blocks, out, kToFloat);
    case DType::kF16:
      return DecodeElements<uint16_t>(blocks, out, F16ToF32);
    case DType::kBF16:
      return DecodeElements<uint16_t>(blocks, out, Bf16ToF32);
    case DType::kF64:
      return DecodeElements<double>(blocks, out, kToFloat);
    case DType::kI8:
      return DecodeElements<int8_t>(blocks, out, kToFloat);
    case DType::kI16:
      return DecodeElements<int16_t>(blocks, out, kToFloat);
    case DType::kI32:
      return DecodeElements<int32_t>(blocks, out, kToFloat);
    case DType::kI64:
      return DecodeElements<int64_t>(blocks, out, kToFloat);
    default:
      return DecodeBlocks(dtype, blocks, out);
  }
}

}  // namespace sluice::formats
