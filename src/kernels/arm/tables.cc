#include "kernels/tables.h"

#include "kernels/arm/neon.h"
#include "kernels/scalar.h"

namespace sluice::kernels {

std::span<const Kernels* const> Tables() {
  static constexpr const Kernels* kTables[] = {&kScalarKernels, &kNeonKernels, &kDotprodKernels,
                                               &kI8mmKernels};
  return kTables;
}

}  // namespace sluice::kernels
