// The scalar kernels: the definition that every other table is held to, bit for bit, and the fallback where a
// machine has nothing better. Plain loops in the canonical order (docs/arithmetic.md); nothing here is tuned.
//
// Private to this folder. Functions are pure, as all kernels are: any thread.
#pragma once

#include "kernels/kernels.h"

namespace sluice::kernels {

extern const Kernels kScalarKernels;

namespace scalar {

// scalar_products.cc: the block formats, and F32, F16, BF16.
template <formats::DType kType>
void MatmulQuantised(const MatmulArgs& args);
template <formats::DType kType>
void MatmulFloat(const MatmulArgs& args);

// scalar_attention.cc
void AttentionTile(const AttentionTileArgs& args);
void AttentionRows(const AttentionRowsArgs& args);
void AttentionScores(const AttentionTileArgs& args);
void AttentionMerge(float* o, float a, const float* chunk, float b, int64_t n);

// scalar_rows.cc
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

// scalar_peaks.cc
int64_t Int8Peak(int64_t rounds);
int64_t F32Peak(int64_t rounds);

}  // namespace scalar
}  // namespace sluice::kernels
