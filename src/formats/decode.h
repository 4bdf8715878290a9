// The definition of every weight format: blocks → floats, in plain scalar code that all kernels are held to.
// Layouts and code books: docs/formats.md, with their sources.
#pragma once

#include <cstddef>
#include <span>

#include "formats/dtype.h"

namespace sluice::formats {

// Decodes columns = out.size() elements (a multiple of the block length) from RowBytes(dtype, columns) bytes.
// Every bit pattern decodes to something (perhaps NaN or infinity); none is undefined. Integer types convert.
void DecodeRow(DType dtype, const std::byte* blocks, std::span<float> out);

}  // namespace sluice::formats
