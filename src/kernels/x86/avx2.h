// The AVX2 kernels, one function each. Private to this folder; the table is in avx2.cc.
#pragma once

#include "kernels/kernels.h"

namespace sluice::kernels {

extern const Kernels kAvx2Kernels;

namespace avx2 {

// avx2_products.cc
void MatmulF32(const MatmulArgs& args);
void MatmulF16(const MatmulArgs& args);
void MatmulBf16(const MatmulArgs& args);
void MatmulQ4_0(const MatmulArgs& args);
void MatmulQ4_1(const MatmulArgs& args);
void MatmulQ5_0(const MatmulArgs& args);
void MatmulQ5_1(const MatmulArgs& args);
void MatmulQ8_0(const MatmulArgs& args);
void MatmulIQ4_NL(const MatmulArgs& args);
void MatmulMXFP4(const MatmulArgs& args);
void MatmulQ2_K(const MatmulArgs& args);
void MatmulQ3_K(const MatmulArgs& args);
void MatmulQ4_K(const MatmulArgs& args);
void MatmulQ5_K(const MatmulArgs& args);
void MatmulQ6_K(const MatmulArgs& args);
void MatmulIQ4_XS(const MatmulArgs& args);
void MatmulIQ2_XXS(const MatmulArgs& args);
void MatmulIQ2_XS(const MatmulArgs& args);
void MatmulIQ2_S(const MatmulArgs& args);
void MatmulIQ3_XXS(const MatmulArgs& args);
void MatmulIQ3_S(const MatmulArgs& args);
void MatmulIQ1_S(const MatmulArgs& args);
void MatmulIQ1_M(const MatmulArgs& args);
void MatmulTQ1_0(const MatmulArgs& args);
void MatmulTQ2_0(const MatmulArgs& args);
void MatmulNVFP4(const MatmulArgs& args);
void MatmulQ2_0(const MatmulArgs& args);
void MatmulQ1_0(const MatmulArgs& args);

// avx2_batch.cc: from a few activation rows on.
void BatchF32(const MatmulArgs& args);
void BatchF16(const MatmulArgs& args);
void BatchBf16(const MatmulArgs& args);
void BatchQ4_0(const MatmulArgs& args);
void BatchQ4_1(const MatmulArgs& args);
void BatchQ5_0(const MatmulArgs& args);
void BatchQ5_1(const MatmulArgs& args);
void BatchQ8_0(const MatmulArgs& args);
void BatchIQ4_NL(const MatmulArgs& args);
void BatchMXFP4(const MatmulArgs& args);
void BatchQ2_K(const MatmulArgs& args);
void BatchQ3_K(const MatmulArgs& args);
void BatchQ4_K(const MatmulArgs& args);
void BatchQ5_K(const MatmulArgs& args);
void BatchQ6_K(const MatmulArgs& args);
void BatchIQ4_XS(const MatmulArgs& args);
void BatchIQ2_XXS(const MatmulArgs& args);
void BatchIQ2_XS(const MatmulArgs& args);
void BatchIQ2_S(const MatmulArgs& args);
void BatchIQ3_XXS(const MatmulArgs& args);
void BatchIQ3_S(const MatmulArgs& args);
void BatchIQ1_S(const MatmulArgs& args);
void BatchIQ1_M(const MatmulArgs& args);
void BatchTQ1_0(const MatmulArgs& args);
void BatchTQ2_0(const MatmulArgs& args);
void BatchNVFP4(const MatmulArgs& args);
void BatchQ2_0(const MatmulArgs& args);
void BatchQ1_0(const MatmulArgs& args);

// avx2_attention.cc
void AttentionTile(const AttentionTileArgs& args);
void AttentionRows(const AttentionRowsArgs& args);
void AttentionScores(const AttentionTileArgs& args);
void AttentionMerge(float* o, float a, const float* chunk, float b, int64_t n);

// avx2_rows.cc
void QuantizeRow(ActivationKind kind, const float* x, int64_t columns, int8_t* q, float* scale,
                 int16_t* sums);
void F32ToF16Row(const float* x, int64_t n, uint16_t* y);
void RmsNorm(const float* x, const float* weight, int64_t n, float eps, float* y);
void LayerNorm(const float* x, const float* weight, const float* bias, int64_t n, float eps, float* y);
void Silu(const float* gate, const float* up, int64_t n, float* y);
void GeluTanh(const float* gate, const float* up, int64_t n, float* y);
void GeluErf(const float* gate, const float* up, int64_t n, float* y);
void ReluSquared(const float* gate, const float* up, int64_t n, float* y);
void Softcap(const float* x, int64_t n, float cap, float* y);
void RopeInterleaved(float* x, const float* cos, const float* sin, int64_t pairs);
void RopeHalf(float* x, const float* cos, const float* sin, int64_t pairs);

// avx2_peaks.cc
int64_t Int8Peak(int64_t rounds);
int64_t F32Peak(int64_t rounds);

}  // namespace avx2
}  // namespace sluice::kernels
