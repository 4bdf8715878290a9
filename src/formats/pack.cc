#include "formats/pack.h"

#include <array>

#include "base/check.h"
#include "formats/families.h"

namespace sluice::formats {
namespace {

template <typename Block, void (*kPack)(const UnpackedBlock&, Block&)>
void ToBytes(const UnpackedBlock& in, std::byte* block) {
  static_assert(alignof(Block) == 1 && std::is_trivial_v<Block>);
  kPack(in, *reinterpret_cast<Block*>(block));
}

constexpr auto kPackers = [] {
  std::array<PackFn, kDTypeLimit> table{};
  const auto set = [&table](DType dtype, PackFn fn) { table[static_cast<size_t>(dtype)] = fn; };
  set(DType::kQ4_0, ToBytes<BlockQ4_0, PackQ4_0>);
  set(DType::kQ4_1, ToBytes<BlockQ4_1, PackQ4_1>);
  set(DType::kQ5_0, ToBytes<BlockQ5_0, PackQ5_0>);
  set(DType::kQ5_1, ToBytes<BlockQ5_1, PackQ5_1>);
  set(DType::kQ8_0, ToBytes<BlockQ8_0, PackQ8_0>);
  set(DType::kQ1_0, ToBytes<BlockQ1_0, PackQ1_0>);
  set(DType::kQ2_0, ToBytes<BlockQ2_0, PackQ2_0>);
  set(DType::kQ2_K, ToBytes<BlockQ2_K, PackQ2_K>);
  set(DType::kQ3_K, ToBytes<BlockQ3_K, PackQ3_K>);
  set(DType::kQ4_K, ToBytes<BlockQ4_K, PackQ4_K>);
  set(DType::kQ5_K, ToBytes<BlockQ5_K, PackQ5_K>);
  set(DType::kQ6_K, ToBytes<BlockQ6_K, PackQ6_K>);
  set(DType::kIQ1_S, ToBytes<BlockIQ1_S, PackIQ1_S>);
  set(DType::kIQ1_M, ToBytes<BlockIQ1_M, PackIQ1_M>);
  set(DType::kIQ2_XXS, ToBytes<BlockIQ2_XXS, PackIQ2_XXS>);
  set(DType::kIQ2_XS, ToBytes<BlockIQ2_XS, PackIQ2_XS>);
  set(DType::kIQ2_S, ToBytes<BlockIQ2_S, PackIQ2_S>);
  set(DType::kIQ3_XXS, ToBytes<BlockIQ3_XXS, PackIQ3_XXS>);
  set(DType::kIQ3_S, ToBytes<BlockIQ3_S, PackIQ3_S>);
  set(DType::kIQ4_NL, ToBytes<BlockIQ4_NL, PackIQ4_NL>);
  set(DType::kIQ4_XS, ToBytes<BlockIQ4_XS, PackIQ4_XS>);
  set(DType::kTQ1_0, ToBytes<BlockTQ1_0, PackTQ1_0>);
  set(DType::kTQ2_0, ToBytes<BlockTQ2_0, PackTQ2_0>);
  set(DType::kMXFP4, ToBytes<BlockMXFP4, PackMXFP4>);
  set(DType::kNVFP4, ToBytes<BlockNVFP4, PackNVFP4>);
  return table;
}();

}  // namespace

PackFn PackerFor(DType dtype) {
  const PackFn pack = kPackers[static_cast<size_t>(dtype)];
  SLUICE_CHECK(pack != nullptr);
  return pack;
}

}  // namespace sluice::formats
