// One instruction set's table: its own quantised products, the shared float kernels for the rest.
// Private to this folder; in an anonymous namespace, as formats.h.
#pragma once

#include "kernels/arm/neon.h"
#include "kernels/arm/products.h"

namespace sluice::kernels::arm {
namespace {

template <typename Isa>
constexpr Kernels MakeTable(std::string_view name, bool (*supported)(const platform::CpuFeatures&)) {
  Kernels table = {
      .name = name,
      .supported = supported,
      .quantize_row = neon::QuantizeRow,
      .matmul = {},
      .attention_tile = neon::AttentionTile,
      .f32_to_f16 = neon::F32ToF16Row,
      .rms_norm = neon::RmsNorm,
      .layer_norm = neon::LayerNorm,
      .silu = neon::Silu,
      .gelu_tanh = neon::GeluTanh,
      .gelu_erf = neon::GeluErf,
      .relu_squared = neon::ReluSquared,
      .softcap = neon::Softcap,
      .rope_interleaved = neon::RopeInterleaved,
      .rope_half = neon::RopeHalf,
  };
  table.matmul[static_cast<size_t>(DType::kF32)] = neon::MatmulF32;
  table.matmul[static_cast<size_t>(DType::kF16)] = neon::MatmulF16;
  table.matmul[static_cast<size_t>(DType::kBF16)] = neon::MatmulBf16;
  AddQuantised<Isa>(table.matmul);
  return table;
}

}  // namespace
}  // namespace sluice::kernels::arm
