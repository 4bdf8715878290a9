// One instruction set's table: its own quantised products, the shared float kernels for the rest.
// Private to this folder; in an anonymous namespace, as formats.h.
#pragma once

#include "kernels/arm/neon.h"
#include "kernels/arm/nvfp4.h"
#include "kernels/arm/products.h"

namespace sluice::kernels::arm {
namespace {

// The sums are factors too: a product of constants would be computed once.
template <typename Isa>
int64_t Int8Peak(int64_t rounds) {
  constexpr int kChains = 16;
  const int8x16_t x = vdupq_n_s8(3);
  int32x4_t acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = vdupq_n_s32(i);
  for (int64_t round = 0; round < rounds; ++round) {
    for (int32x4_t& a : acc) a = Isa::Peak(a, vreinterpretq_s8_s32(a), x);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = vaddq_s32(acc[0], acc[i]);
  volatile int32_t sink = vaddvq_s32(acc[0]);
  static_cast<void>(sink);
  return rounds * kChains * Isa::kPeakMacs;
}

template <typename Isa>
constexpr Kernels MakeTable(std::string_view name, bool (*supported)(const platform::CpuFeatures&)) {
  Kernels table = {
      .name = name,
      .supported = supported,
      .quantize_row = neon::QuantizeRow,
      .measure_reach = nullptr,
      .matmul = {},
      .attention_tile = neon::AttentionTile,
      .attention_rows = neon::AttentionRows,
      .attention_scores = neon::AttentionScores,
      .attention_merge = neon::AttentionMerge,
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
      .int8_peak = Int8Peak<Isa>,
      .f32_peak = neon::F32Peak,
  };
  table.matmul[static_cast<size_t>(DType::kF32)] = neon::MatmulF32;
  table.matmul[static_cast<size_t>(DType::kF16)] = neon::MatmulF16;
  table.matmul[static_cast<size_t>(DType::kBF16)] = neon::MatmulBf16;
  AddQuantised<Isa>(table.matmul);
  table.matmul[static_cast<size_t>(DType::kNVFP4)] = MatmulNvfp4<Isa>;
  return table;
}

}  // namespace
}  // namespace sluice::kernels::arm
