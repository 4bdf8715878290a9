// The float kernels for any 64-bit ARM, shared by the three tables: none of them gains from a newer
// instruction set. Private to this folder. Contracts: kernels.h.
#pragma once

#include "kernels/kernels.h"

namespace sluice::kernels {

extern const Kernels kNeonKernels;
extern const Kernels kDotprodKernels;
extern const Kernels kI8mmKernels;

namespace neon {

// float_products.cc
void MatmulF32(const MatmulArgs& args);
void MatmulF16(const MatmulArgs& args);
void MatmulBf16(const MatmulArgs& args);

int64_t F32Peak(int64_t rounds);

// attention.cc
void AttentionTile(const AttentionTileArgs& args);
void AttentionRows(const AttentionRowsArgs& args);
void AttentionScores(const AttentionTileArgs& args);
void AttentionMerge(float* o, float a, const float* chunk, float b, int64_t n);

// rows.cc
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

}  // namespace neon
}  // namespace sluice::kernels
