// Which kernel is for how many activation rows. Of internal linkage (isa_avx2.h).
#pragma once

#include "kernels/kernels.h"

namespace sluice::kernels {
namespace {

// From here on, unpacking a panel costs less than reading the codes again for each activation row.
constexpr int64_t kBatch = 4;
// Widening a row of floats costs less than unpacking codes, so a panel pays later.
constexpr int64_t kFloatBatch = 36;

template <int64_t kFrom = kBatch>
inline void ByBatch(const MatmulArgs& args, MatmulFn few, MatmulFn many) {
  (args.x.batch < kFrom ? few : many)(args);
}

}  // namespace
}  // namespace sluice::kernels
