// Refining: blocks whose elements' errors count together. Where encoders (encode.h) weigh each element's
// error by itself, here the error of a block's values y against targets t is (t − y)ᵀ S (t − y) with a metric
// S: what correlated inputs make of it. A block begins with the scales that an encoder found.
//
// Plain scalar code in a fixed order of operations: the same bytes on every machine. Pure functions; any
// thread.
#pragma once

#include <cstddef>
#include <span>

#include "formats/dtype.h"
#include "formats/unpack.h"

namespace sluice::formats {

// False for IQ1 and for what is no block format: their blocks stay as the encoder makes them.
bool CanRefine(DType dtype);

// Rows of a square matrix over a block's elements, or of a larger one of which it is a part.
struct SquareView {
  const float* first;  // element (0, 0)
  size_t stride;       // floats from one row to the next
  const float* row(int i) const { return first + static_cast<size_t>(i) * stride; }
};

// Chooses codes anew, one element (or one vector of a grid) after the other; each makes up for the errors of
// those before it. Scales stay. `target`: [length]; `factor`: upper triangular U with S = U Uᵀ.
void RoundWithFeedback(DType dtype, std::span<const float> target, SquareView factor, UnpackedBlock& block);

// Changes codes, scales and minimums one at a time as long as that makes the error smaller, for at most
// `rounds` rounds over the block. `metric`: symmetric, positive on its diagonal. `gradient`, [length], is S(t
// − y) before and after: elements outside of the block may have their part in it. Returns by how much the
// error fell.
float Refine(DType dtype, SquareView metric, int rounds, std::span<float> gradient, UnpackedBlock& block);

// What the block stands for, as decoding gives it. [length]
void ValuesOf(const UnpackedBlock& block, std::span<float> values);

}  // namespace sluice::formats
