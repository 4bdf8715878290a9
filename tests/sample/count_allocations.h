// How often this program has called operator new: to prove that something allocates nothing.
#pragma once

#include <cstddef>

namespace sluice::sample {

size_t Allocations();

}  // namespace sluice::sample
