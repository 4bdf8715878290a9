// Packing: the inverse of unpacking (unpack.h). What a format's unpacker can give, its packer turns back into
// a block that unpacks to the same. Encoders (encode.h) choose integers and scales; packers know where the
// bits go.
#pragma once

#include <cstddef>

#include "formats/unpack.h"

namespace sluice::formats {

// Fills Traits(dtype).block_bytes bytes at any alignment from an UnpackedBlock whose values the format has: d
// and dmin are f16 values (divided as unpack.h says), scales, mins and codes in range, grid formats' codes
// vectors of their grid. dtype must be quantised.
using PackFn = void (*)(const UnpackedBlock& in, std::byte* block);
PackFn PackerFor(DType dtype);

}  // namespace sluice::formats
