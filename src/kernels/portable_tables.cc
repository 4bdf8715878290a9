// A processor family without kernels of its own.
#include "kernels/scalar.h"
#include "kernels/tables.h"

namespace sluice::kernels {

std::span<const Kernels* const> Tables() {
  static constexpr const Kernels* kTables[] = {&kScalarKernels};
  return kTables;
}

}  // namespace sluice::kernels
