// The table of AVX-512 VNNI. Compiled without flags of its own: it only names functions.
#include "kernels/x86/avx512vnni.h"

#include "kernels/x86/avx2.h"

namespace sluice::kernels {
namespace {

using MatmulTable = std::array<MatmulFn, formats::kDTypeLimit>;

constexpr MatmulTable MakeMatmulTable() {
  using enum formats::DType;
  MatmulTable table{};
  const auto set = [&](formats::DType dtype, MatmulFn matmul) { table[static_cast<size_t>(dtype)] = matmul; };
  set(kF32, avx512vnni::MatmulF32);
  set(kF16, avx512vnni::MatmulF16);
  set(kBF16, avx512vnni::MatmulBf16);
  set(kQ4_0, avx512vnni::MatmulQ4_0);
  set(kQ4_1, avx512vnni::MatmulQ4_1);
  set(kQ5_0, avx512vnni::MatmulQ5_0);
  set(kQ5_1, avx512vnni::MatmulQ5_1);
  set(kQ8_0, avx512vnni::MatmulQ8_0);
  set(kIQ4_NL, avx512vnni::MatmulIQ4_NL);
  set(kMXFP4, avx512vnni::MatmulMXFP4);
  set(kQ2_K, avx512vnni::MatmulQ2_K);
  set(kQ3_K, avx512vnni::MatmulQ3_K);
  set(kQ4_K, avx512vnni::MatmulQ4_K);
  set(kQ5_K, avx512vnni::MatmulQ5_K);
  set(kQ6_K, avx512vnni::MatmulQ6_K);
  set(kIQ4_XS, avx512vnni::MatmulIQ4_XS);
  set(kIQ2_XXS, avx512vnni::MatmulIQ2_XXS);
  set(kIQ2_XS, avx512vnni::MatmulIQ2_XS);
  set(kIQ2_S, avx512vnni::MatmulIQ2_S);
  set(kIQ3_XXS, avx512vnni::MatmulIQ3_XXS);
  set(kIQ3_S, avx512vnni::MatmulIQ3_S);
  set(kIQ1_S, avx512vnni::MatmulIQ1_S);
  set(kIQ1_M, avx512vnni::MatmulIQ1_M);
  set(kTQ1_0, avx512vnni::MatmulTQ1_0);
  set(kTQ2_0, avx512vnni::MatmulTQ2_0);
  set(kNVFP4, avx512vnni::MatmulNVFP4);
  set(kQ1_0, avx512vnni::MatmulQ1_0);
  set(kQ2_0, avx512vnni::MatmulQ2_0);
  return table;
}

bool Supported(const platform::CpuFeatures& cpu) {
  return cpu.avx2 && cpu.fma && cpu.f16c && cpu.avx512f && cpu.avx512bw && cpu.avx512vl && cpu.avx512dq &&
         cpu.avx512vnni;
}

}  // namespace

constinit const Kernels kAvx512VnniKernels = {
    .name = "avx512vnni",
    .supported = Supported,
    .quantize_row = avx2::QuantizeRow,
    .measure_reach = avx512vnni::MeasureReach,
    .matmul = MakeMatmulTable(),
    .attention_tile = avx512vnni::AttentionTile,
    .attention_rows = avx512vnni::AttentionRows,
    .attention_scores = avx512vnni::AttentionScores,
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
    .int8_peak = avx512vnni::Int8Peak,
    .f32_peak = avx512vnni::F32Peak,
};

}  // namespace sluice::kernels
