// The list of tables of this build. One file for each processor family defines it (x86/tables.cc,
// arm/tables.cc, portable_tables.cc); CMake picks. Private to this folder.
#pragma once

#include <span>

#include "kernels/kernels.h"

namespace sluice::kernels {

// Scalar first, then from the slowest to the fastest.
std::span<const Kernels* const> Tables();

}  // namespace sluice::kernels
