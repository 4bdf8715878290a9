// The table of AVX2. Compiled without flags of its own: it only names functions.
#include "kernels/x86/avx2.h"

namespace sluice::kernels {
namespace {

using MatmulTable = std::array<MatmulFn, formats::kDTypeLimit>;

constexpr MatmulTable MakeMatmulTable() {
  using enum formats::DType;
  MatmulTable table{};
  const auto set = [&](formats::DType dtype, MatmulFn matmul) { table[static_cast<size_t>(dtype)] = matmul; };
  set(kF32, avx2::MatmulF32);
  set(kF16, avx2::MatmulF16);
  set(kBF16, avx2::MatmulBf16);
  set(kQ4_0, avx2::MatmulQ4_0);
  set(kQ4_1, avx2::MatmulQ4_1);
  set(kQ5_0, avx2::MatmulQ5_0);
  set(kQ5_1, avx2::MatmulQ5_1);
  set(kQ8_0, avx2::MatmulQ8_0);
  set(kIQ4_NL, avx2::MatmulIQ4_NL);
  set(kMXFP4, avx2::MatmulMXFP4);
  set(kQ2_K, avx2::MatmulQ2_K);
  set(kQ3_K, avx2::MatmulQ3_K);
  set(kQ4_K, avx2::MatmulQ4_K);
  set(kQ5_K, avx2::MatmulQ5_K);
  set(kQ6_K, avx2::MatmulQ6_K);
  set(kIQ4_XS, avx2::MatmulIQ4_XS);
  set(kIQ2_XXS, avx2::MatmulIQ2_XXS);
  set(kIQ2_XS, avx2::MatmulIQ2_XS);
  set(kIQ2_S, avx2::MatmulIQ2_S);
  set(kIQ3_XXS, avx2::MatmulIQ3_XXS);
  set(kIQ3_S, avx2::MatmulIQ3_S);
  set(kIQ1_S, avx2::MatmulIQ1_S);
  set(kIQ1_M, avx2::MatmulIQ1_M);
  set(kTQ1_0, avx2::MatmulTQ1_0);
  set(kTQ2_0, avx2::MatmulTQ2_0);
  set(kNVFP4, avx2::MatmulNVFP4);
  set(kQ1_0, avx2::MatmulQ1_0);
  set(kQ2_0, avx2::MatmulQ2_0);
  return table;
}

bool Supported(const platform::CpuFeatures& cpu) { return cpu.avx2 && cpu.fma && cpu.f16c; }

}  // namespace

constinit const Kernels kAvx2Kernels = {
    .name = "avx2",
    .supported = Supported,
    .quantize_row = avx2::QuantizeRow,
    .measure_reach = nullptr,
    .matmul = MakeMatmulTable(),
    .attention_tile = avx2::AttentionTile,
    .attention_rows = avx2::AttentionRows,
    .attention_scores = avx2::AttentionScores,
    .attention_merge = avx2::AttentionMerge,
    .f32_to_f16 = avx2::F32ToF16Row,
    .rms_norm = avx2::RmsNorm,
    .layer_norm = avx2::LayerNorm,
    .silu = avx2::Silu,
    .gelu_tanh = avx2::GeluTanh,
    .gelu_erf = avx2::GeluErf,
    .relu_squared = avx2::ReluSquared,
    .softcap = avx2::Softcap,
    .rope_interleaved = avx2::RopeInterleaved,
    .rope_half = avx2::RopeHalf,
    .int8_peak = avx2::Int8Peak,
    .f32_peak = avx2::F32Peak,
};

}  // namespace sluice::kernels
