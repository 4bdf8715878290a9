#include "kernels/kernels.h"
#include "kernels/scalar.h"
#include "kernels/tables.h"

namespace sluice::kernels {

ActivationKind ActivationKindFor(formats::DType weight) {
  using enum formats::DType;
  switch (weight) {
    case kQ4_0:
    case kQ4_1:
    case kQ5_0:
    case kQ5_1:
    case kQ8_0:
    case kIQ4_NL:
    case kMXFP4:
    case kNVFP4:
      return ActivationKind::kQ8x32;
    case kQ2_0:
      return ActivationKind::kQ8x64;
    case kQ1_0:
      return ActivationKind::kQ8x128;
    case kQ2_K:
    case kQ3_K:
    case kQ4_K:
    case kQ5_K:
    case kQ6_K:
    case kIQ2_XXS:
    case kIQ2_XS:
    case kIQ2_S:
    case kIQ3_XXS:
    case kIQ3_S:
    case kIQ1_S:
    case kIQ1_M:
    case kIQ4_XS:
    case kTQ1_0:
    case kTQ2_0:
      return ActivationKind::kQ8x256;
    case kF32:
    case kF16:
    case kBF16:
    case kF64:
    case kI8:
    case kI16:
    case kI32:
    case kI64:
      return ActivationKind::kF32;
  }
  return ActivationKind::kF32;
}

std::span<const Kernels* const> AllKernels() { return Tables(); }

const Kernels& BestKernels(const platform::CpuFeatures& cpu) {
  const Kernels* best = &kScalarKernels;
  for (const Kernels* table : Tables()) {
    if (table->supported(cpu)) best = table;
  }
  return *best;
}

const Kernels* FindKernels(std::string_view name) {
  for (const Kernels* table : Tables()) {
    if (table->name == name) return table;
  }
  return nullptr;
}

}  // namespace sluice::kernels
