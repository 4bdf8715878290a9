// Inside formats/ only: the search of each family of formats. They fill in an UnpackedBlock that the format's
// packer can store.
#pragma once

#include "formats/fit.h"

namespace sluice::formats {

using EncodeFn = void (*)(const FitBlock& block, UnpackedBlock& out);

// encode_scaled.cc: x = d · code, or x = d · scale · code
void FitQ4_0(const FitBlock& block, UnpackedBlock& out);
void FitQ5_0(const FitBlock& block, UnpackedBlock& out);
void FitQ8_0(const FitBlock& block, UnpackedBlock& out);
void FitIQ4_NL(const FitBlock& block, UnpackedBlock& out);
void FitQ3_K(const FitBlock& block, UnpackedBlock& out);
void FitQ6_K(const FitBlock& block, UnpackedBlock& out);
void FitIQ4_XS(const FitBlock& block, UnpackedBlock& out);
// encode_minimum.cc: x = d · code − m, or x = d · scale · code − dmin · min
void FitQ4_1(const FitBlock& block, UnpackedBlock& out);
void FitQ5_1(const FitBlock& block, UnpackedBlock& out);
void FitQ2_K(const FitBlock& block, UnpackedBlock& out);
void FitQ4_K(const FitBlock& block, UnpackedBlock& out);
void FitQ5_K(const FitBlock& block, UnpackedBlock& out);
// encode_few.cc: two to four codes and one scale
void FitQ1_0(const FitBlock& block, UnpackedBlock& out);
void FitQ2_0(const FitBlock& block, UnpackedBlock& out);
void FitTernary(const FitBlock& block, UnpackedBlock& out);  // TQ1_0 and TQ2_0
// encode_fp4.cc: 4-bit floats, whose scales are 8-bit floats
void FitMXFP4(const FitBlock& block, UnpackedBlock& out);
void FitNVFP4(const FitBlock& block, UnpackedBlock& out);
// encode_grid.cc: whole vectors from a grid
void FitIQ1_S(const FitBlock& block, UnpackedBlock& out);
void FitIQ1_M(const FitBlock& block, UnpackedBlock& out);
void FitIQ2_XXS(const FitBlock& block, UnpackedBlock& out);
void FitIQ2_XS(const FitBlock& block, UnpackedBlock& out);
void FitIQ2_S(const FitBlock& block, UnpackedBlock& out);
void FitIQ3_XXS(const FitBlock& block, UnpackedBlock& out);
void FitIQ3_S(const FitBlock& block, UnpackedBlock& out);

}  // namespace sluice::formats
