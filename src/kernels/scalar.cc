#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

using formats::DType;
using MatmulTable = std::array<MatmulFn, formats::kDTypeLimit>;

template <DType... kTypes>
constexpr void AddFloat(MatmulTable& table) {
  ((table[static_cast<size_t>(kTypes)] = scalar::MatmulFloat<kTypes>), ...);
}
template <DType... kTypes>
constexpr void AddQuantised(MatmulTable& table) {
  ((table[static_cast<size_t>(kTypes)] = scalar::MatmulQuantised<kTypes>), ...);
}

constexpr MatmulTable MakeMatmulTable() {
  using enum DType;
  MatmulTable table{};
  AddFloat<kF32, kF16, kBF16>(table);
  AddQuantised<kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K, kIQ2_XXS, kIQ2_XS,
               kIQ2_S, kIQ3_XXS, kIQ3_S, kIQ1_S, kIQ1_M, kIQ4_NL, kIQ4_XS, kTQ1_0, kTQ2_0, kMXFP4, kNVFP4,
               kQ1_0, kQ2_0>(table);
  return table;
}

}  // namespace

constinit const Kernels kScalarKernels = {
    .name = "scalar",
    .supported = [](const platform::CpuFeatures&) { return true; },
    .quantize_row = scalar::QuantizeRow,
    .measure_reach = nullptr,
    .matmul = MakeMatmulTable(),
    .attention_tile = scalar::AttentionTile,
    .attention_rows = scalar::AttentionRows,
    .attention_scores = scalar::AttentionScores,
    .attention_merge = scalar::AttentionMerge,
    .f32_to_f16 = scalar::F32ToF16Row,
    .rms_norm = scalar::RmsNorm,
    .layer_norm = scalar::LayerNorm,
    .silu = scalar::Silu,
    .gelu_tanh = scalar::GeluTanh,
    .gelu_erf = scalar::GeluErf,
    .relu_squared = scalar::ReluSquared,
    .softcap = scalar::Softcap,
    .rope_interleaved = scalar::RopeInterleaved,
    .rope_half = scalar::RopeHalf,
    .int8_peak = scalar::Int8Peak,
    .f32_peak = scalar::F32Peak,
};

}  // namespace sluice::kernels
