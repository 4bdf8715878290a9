// The rotation of keys and values before they are quantised to few bits: an orthogonal matrix that spreads
// outliers over a head. Dot products of two rotated vectors are those of the vectors; applied twice, it gives
// the vector back (up to rounding). Plain code in a fixed order: the same bits everywhere. Any thread.
#pragma once

#include <cstdint>

namespace sluice::ops {

// Rotates x[n] in runs as long as the largest power of two that divides n, each by the Hadamard matrix over
// √length. docs/arithmetic.md, "Rotation".
void Hadamard(float* x, int64_t n);

}  // namespace sluice::ops
