// Matrix products. Quantised weights: the integer sum of each step is exact and becomes a float once
// (docs/arithmetic.md, "Products with quantised weights"). F32, F16, BF16: 16 lanes of fma.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "formats/unpack.h"
#include "kernels/lanes.h"
#include "kernels/scalar.h"

namespace sluice::kernels::scalar {
namespace {

using formats::DType;
using formats::kGroupLength;
using formats::UnpackedBlock;

// A block is unpacked once for this many activation rows.
constexpr int64_t kBatchTile = 32;
constexpr int kMaxChains = 8;

bool HasMinimum(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ2_K:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return true;
    default:
      return false;
  }
}

// The sums of one activation row, one for each chain: step s of a row adds to chain s mod (number of chains).
struct Chains {
  float chain[kMaxChains] = {};

  float Fold(int n) const {
    float a[kMaxChains];
    for (int c = 0; c < n; ++c) a[c] = chain[c];
    for (int half = n / 2; half > 0; half /= 2) {
      for (int c = 0; c < half; ++c) a[c] = a[c] + a[c + half];
    }
    return a[0];
  }
};

int32_t GroupDot(const int8_t* codes, const int8_t* q) {
  int32_t sum = 0;
  for (int i = 0; i < kGroupLength; ++i) sum += codes[i] * q[i];
  return sum;
}

// One step of a whole block.
float AddBlock(const UnpackedBlock& w, int groups, bool has_minimum, const int8_t* q, const int16_t* sums,
               float scale, float acc) {
  int32_t isum = 0;
  int32_t msum = 0;
  for (int g = 0; g < groups; ++g) {
    isum += w.scales[g] * GroupDot(w.codes + g * kGroupLength, q + g * kGroupLength);
    msum += w.mins[g] * sums[g];
  }
  acc = std::fma(w.d * scale, static_cast<float>(isum), acc);
  if (has_minimum) acc = std::fma(-(w.dmin * scale), static_cast<float>(msum), acc);
  return acc;
}

float Load(const std::byte* p, float (*convert)(uint16_t)) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return convert(bits);
}

template <DType kType>
float Element(const std::byte* row, int64_t i) {
  if constexpr (kType == DType::kF32) {
    float value;
    std::memcpy(&value, row + i * 4, sizeof(value));
    return value;
  } else if constexpr (kType == DType::kF16) {
    return Load(row + i * 2, F16ToF32);
  } else {
    return Load(row + i * 2, Bf16ToF32);
  }
}

}  // namespace

template <DType kType>
void MatmulQuantised(const MatmulArgs& args) {
  const int length = static_cast<int>(formats::Traits(kType).block_length);
  const size_t block_bytes = formats::Traits(kType).block_bytes;
  const formats::UnpackFn unpack = formats::UnpackerFor(kType);
  const bool has_minimum = HasMinimum(kType);
  const int groups = length / kGroupLength;
  const int x_length = BlockLength(args.x.kind);
  const int64_t x_blocks = args.x.columns / x_length;
  const int64_t blocks = args.x.columns / length;
  // NVFP4 steps by its groups of 16, whose scales are too large for an integer sum over the block.
  constexpr bool kStepByGroup = kType == DType::kNVFP4;
  const int chains = kStepByGroup || length <= 32 ? kMaxChains : 1;

  UnpackedBlock w;
  for (int64_t r = 0; r < args.rows; ++r) {
    const std::byte* row = args.weights + static_cast<size_t>(r) * args.row_bytes;
    for (int64_t b0 = 0; b0 < args.x.batch; b0 += kBatchTile) {
      const int64_t tile = std::min(kBatchTile, args.x.batch - b0);
      Chains acc[kBatchTile];
      for (int64_t k = 0; k < blocks; ++k) {
        unpack(row + static_cast<size_t>(k) * block_bytes, w);
        for (int64_t t = 0; t < tile; ++t) {
          const int64_t b = b0 + t;
          const int8_t* q = args.x.q + b * args.x.columns + k * length;
          const int16_t* sums = args.x.sums + (b * args.x.columns + k * length) / kGroupLength;
          const float* scale = args.x.scale + b * x_blocks;
          if constexpr (kStepByGroup) {
            for (int g = 0; g < groups; ++g) {
              float& chain = acc[t].chain[(k * groups + g) % chains];
              const float d = w.d * static_cast<float>(w.scales[g]);
              const int32_t isum = GroupDot(w.codes + g * kGroupLength, q + g * kGroupLength);
              chain = std::fma(d * scale[(k * length + g * kGroupLength) / x_length],
                               static_cast<float>(isum), chain);
            }
          } else {
            float& chain = acc[t].chain[k % chains];
            chain = AddBlock(w, groups, has_minimum, q, sums, scale[k], chain);
          }
        }
      }
      for (int64_t t = 0; t < tile; ++t) args.y[(b0 + t) * args.y_stride + r] = acc[t].Fold(chains);
    }
  }
}

template <DType kType>
void MatmulFloat(const MatmulArgs& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    const std::byte* row = args.weights + static_cast<size_t>(r) * args.row_bytes;
    for (int64_t b = 0; b < args.x.batch; ++b) {
      const float* x = args.x.f32 + b * args.x.columns;
      args.y[b * args.y_stride + r] = Dot16(
          args.x.columns, [&](int64_t i) { return Element<kType>(row, i); }, [&](int64_t i) { return x[i]; });
    }
  }
}

template void MatmulFloat<DType::kF32>(const MatmulArgs&);
template void MatmulFloat<DType::kF16>(const MatmulArgs&);
template void MatmulFloat<DType::kBF16>(const MatmulArgs&);

template void MatmulQuantised<DType::kQ4_0>(const MatmulArgs&);
template void MatmulQuantised<DType::kQ4_1>(const MatmulArgs&);
template void MatmulQuantised<DType::kQ5_0>(const MatmulArgs&);
template void MatmulQuantised<DType::kQ5_1>(const MatmulArgs&);
template void MatmulQuantised<DType::kQ8_0>(const MatmulArgs&);
template void MatmulQuantised<DType::kQ2_K>(const MatmulArgs&);
template void MatmulQuantised<DType::kQ3_K>(const MatmulArgs&);
template void MatmulQuantised<DType::kQ4_K>(const MatmulArgs&);
template void MatmulQuantised<DType::kQ5_K>(const MatmulArgs&);
template void MatmulQuantised<DType::kQ6_K>(const MatmulArgs&);
template void MatmulQuantised<DType::kIQ2_XXS>(const MatmulArgs&);
template void MatmulQuantised<DType::kIQ2_XS>(const MatmulArgs&);
template void MatmulQuantised<DType::kIQ2_S>(const MatmulArgs&);
template void MatmulQuantised<DType::kIQ3_XXS>(const MatmulArgs&);
template void MatmulQuantised<DType::kIQ3_S>(const MatmulArgs&);
template void MatmulQuantised<DType::kIQ1_S>(const MatmulArgs&);
template void MatmulQuantised<DType::kIQ1_M>(const MatmulArgs&);
template void MatmulQuantised<DType::kIQ4_NL>(const MatmulArgs&);
template void MatmulQuantised<DType::kIQ4_XS>(const MatmulArgs&);
template void MatmulQuantised<DType::kTQ1_0>(const MatmulArgs&);
template void MatmulQuantised<DType::kTQ2_0>(const MatmulArgs&);
template void MatmulQuantised<DType::kMXFP4>(const MatmulArgs&);
template void MatmulQuantised<DType::kNVFP4>(const MatmulArgs&);
template void MatmulQuantised<DType::kQ1_0>(const MatmulArgs&);
template void MatmulQuantised<DType::kQ2_0>(const MatmulArgs&);

}  // namespace sluice::kernels::scalar
