// The rotation of keys and values before they are quantised to few bits: an orthogonal matrix that spreads outliers, and
// what all elements have in common, over a head. Dot products of two rotated vectors are those of the vectors. Plain code
// in a fixed order: the same bits everywhere. Any thread.
#pragma once

#include <cstdint>

namespace sluice::ops {

// Rotates x[n], at most kernels::kMaxHeadDim: each element is multiplied by a fixed sign, then each run of the largest power of
// two that divides n by the Hadamard matrix over √length (Tseng et al., QuIP#, 2024, "randomized Hadamard transform"). Without
// the signs elements of about the same value would all go into the first one. docs/arithmetic.md, "Rotation".
void Rotate(float* x, int64_t n);

// Gives a rotated vector back, up to rounding.
void RotateBack(float* x, int64_t n);

}  // namespace sluice::ops
