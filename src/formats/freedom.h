// Inside formats/ only: what a format leaves to choose in a block, as numbers: which codes an element may
// have, which scales a group. The encoders (encoders.h) know this in their code; what improves blocks that
// are there already (refine.h) reads it here.
//
// Constant data; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "formats/dtype.h"

namespace sluice::formats {

// A grid of vectors: entry e has the magnitude values[j * entries + e] at its element j.
struct GridChoice {
  int vector = 0;                 // elements of an entry; 0: no grid format
  int entries = 0;                // a multiple of 4
  std::span<const float> values;  // [vector, entries]
  bool even_signs = false;        // the minuses of each eight elements are even in number
};

struct Freedom {
  int length = 0;  // elements of a block
  int group = 0;   // elements that share a scale (and a minimum), a multiple of 16, or the block
  // Codes of formats without a grid, ascending.
  std::span<const int8_t> levels;
  GridChoice grid;
  // Integer scales from low to high in steps; equal: there is no choice.
  int scale_low = 1, scale_high = 1, scale_step = 1;
  // Integer minimums from 0 on; 0: there is no choice.
  int min_high = 0;
  bool has_minimum = false;
  // d is stored as the f16 nearest to d · half_factor; 0: d is no f16 and stays as it is.
  float half_factor = 1;
};

// Null for formats whose blocks are not improved (IQ1, and what is no block format).
const Freedom* FreedomOf(DType dtype);

}  // namespace sluice::formats
