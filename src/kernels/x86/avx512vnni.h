// The AVX-512 VNNI kernels, one function each. Private to this folder; the table is in avx512vnni.cc.
#pragma once

#include "kernels/kernels.h"

namespace sluice::kernels {

extern const Kernels kAvx512VnniKernels;

namespace avx512vnni {

// avx512vnni_products.cc
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

// avx512vnni_batch.cc: from a few activation rows on.
void MeasureReach(const int8_t* q, int64_t columns, Reach* reach);
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

// avx512vnni_attention.cc
void AttentionTile(const AttentionTileArgs& args);
void AttentionRows(const AttentionRowsArgs& args);
void AttentionScores(const AttentionTileArgs& args);

// avx512vnni_peaks.cc
int64_t Int8Peak(int64_t rounds);
int64_t F32Peak(int64_t rounds);

}  // namespace avx512vnni
}  // namespace sluice::kernels
