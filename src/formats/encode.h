// Encoding: floats → blocks of every weight format, beside their definition (decode.h).
//
// Encoders search for the scales, minimums and codes that make the squared error of a block small: each
// element's error counts by its importance, or all alike where none is given. How: docs/quantize.md. Plain
// scalar code in a fixed order of operations, so that the same values give the same bytes on every machine.
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <span>

#include "formats/dtype.h"

namespace sluice::formats {

// False for the integers and F64.
bool CanEncode(DType dtype);

// Values above this magnitude are beyond the format's scales. Infinity for formats that hold every float.
float LargestValue(DType dtype);

// The index of the first value that is NaN, infinite or above LargestValue; values.size() when there is none.
size_t FindUnfitValue(DType dtype, std::span<const float> values);

// Encodes values.size() elements, a multiple of the block length, into RowBytes(dtype, values.size()) bytes.
// Values are finite; those beyond LargestValue come out wrong, though finite. `importance` is empty, or has
// one finite number ≥ 0 for each value; where a block's are all 0 they count as equal. CanEncode(dtype).
void EncodeRow(DType dtype, std::span<const float> values, std::span<const float> importance,
               std::byte* blocks);

}  // namespace sluice::formats
