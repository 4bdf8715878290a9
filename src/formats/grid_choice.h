// Inside formats/ only: eight elements of a grid format (freedom.h), chosen together.
#pragma once

#include "formats/freedom.h"

namespace sluice::formats {

inline constexpr int kUnit = 8;

// Codes c of eight elements that make (s c)ᵀ M (s c) − 2 (s c)ᵀ b small. `m`: [8, 8], symmetric; `wanted`:
// their signs are tried first; s > 0.
void ChooseUnit(const GridChoice& grid, const float (&m)[kUnit][kUnit], const float (&b)[kUnit],
                const float (&wanted)[kUnit], float s, int8_t* codes);

}  // namespace sluice::formats
