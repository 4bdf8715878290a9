#include "kernels/tables.h"

#include "kernels/scalar.h"
#include "kernels/x86/avx2.h"
#include "kernels/x86/avx512vnni.h"

namespace sluice::kernels {

std::span<const Kernels* const> Tables() {
  static constexpr const Kernels* kTables[] = {&kScalarKernels, &kAvx2Kernels, &kAvx512VnniKernels};
  return kTables;
}

}  // namespace sluice::kernels
