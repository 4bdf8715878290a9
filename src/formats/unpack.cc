#include "formats/unpack.h"

#include <array>

#include "base/check.h"
#include "formats/families.h"

namespace sluice::formats {
namespace {

template <typename Block, void (*kUnpack)(const Block&, UnpackedBlock&)>
void FromBytes(const std::byte* block, UnpackedBlock& out) {
  static_assert(alignof(Block) == 1 && std::is_trivial_v<Block>);
  kUnpack(*reinterpret_cast<const Block*>(block), out);
}

constexpr auto kUnpackers = [] {
  std::array<UnpackFn, kDTypeLimit> table{};
  const auto set = [&table](DType dtype, UnpackFn fn) { table[static_cast<size_t>(dtype)] = fn; };
  set(DType::kQ4_0, FromBytes<BlockQ4_0, UnpackQ4_0>);
  set(DType::kQ4_1, FromBytes<BlockQ4_1, UnpackQ4_1>);
  set(DType::kQ5_0, FromBytes<BlockQ5_0, UnpackQ5_0>);
  set(DType::kQ5_1, FromBytes<BlockQ5_1, UnpackQ5_1>);
  set(DType::kQ8_0, FromBytes<BlockQ8_0, UnpackQ8_0>);
  set(DType::kQ1_0, FromBytes<BlockQ1_0, UnpackQ1_0>);
  set(DType::kQ2_0, FromBytes<BlockQ2_0, UnpackQ2_0>);
  set(DType::kQ2_K, FromBytes<BlockQ2_K, UnpackQ2_K>);
  set(DType::kQ3_K, FromBytes<BlockQ3_K, UnpackQ3_K>);
  set(DType::kQ4_K, FromBytes<BlockQ4_K, UnpackQ4_K>);
  set(DType::kQ5_K, FromBytes<BlockQ5_K, UnpackQ5_K>);
  set(DType::kQ6_K, FromBytes<BlockQ6_K, UnpackQ6_K>);
  set(DType::kIQ1_S, FromBytes<BlockIQ1_S, UnpackIQ1_S>);
  set(DType::kIQ1_M, FromBytes<BlockIQ1_M, UnpackIQ1_M>);
  set(DType::kIQ2_XXS, FromBytes<BlockIQ2_XXS, UnpackIQ2_XXS>);
  set(DType::kIQ2_XS, FromBytes<BlockIQ2_XS, UnpackIQ2_XS>);
  set(DType::kIQ2_S, FromBytes<BlockIQ2_S, UnpackIQ2_S>);
  set(DType::kIQ3_XXS, FromBytes<BlockIQ3_XXS, UnpackIQ3_XXS>);
  set(DType::kIQ3_S, FromBytes<BlockIQ3_S, UnpackIQ3_S>);
  set(DType::kIQ4_NL, FromBytes<BlockIQ4_NL, UnpackIQ4_NL>);
  set(DType::kIQ4_XS, FromBytes<BlockIQ4_XS, UnpackIQ4_XS>);
  set(DType::kTQ1_0, FromBytes<BlockTQ1_0, UnpackTQ1_0>);
  set(DType::kTQ2_0, FromBytes<BlockTQ2_0, UnpackTQ2_0>);
  set(DType::kMXFP4, FromBytes<BlockMXFP4, UnpackMXFP4>);
  set(DType::kNVFP4, FromBytes<BlockNVFP4, UnpackNVFP4>);
  return table;
}();

}  // namespace

bool IsQuantised(DType dtype) { return kUnpackers[static_cast<size_t>(dtype)] != nullptr; }

UnpackFn UnpackerFor(DType dtype) {
  const UnpackFn unpack = kUnpackers[static_cast<size_t>(dtype)];
  SLUICE_CHECK(unpack != nullptr);
  return unpack;
}

}  // namespace sluice::formats
