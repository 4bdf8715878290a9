// Inside formats/ only: one block on its way from floats to integers, and the search for a scale.
//
// All sums run over four lanes, element i in lane i mod 4, folded 2, 1: one order of operations on every
// machine.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/half.h"
#include "formats/unpack.h"

namespace sluice::formats {

// Four floats side by side: a register of SSE2 or NEON, without naming either.
inline constexpr int kLanes = 4;
using Lanes = float __attribute__((vector_size(16)));

inline Lanes Load(const float* p) {
  Lanes lanes;
  std::memcpy(&lanes, p, sizeof(lanes));
  return lanes;
}

inline float Fold(Lanes lanes) { return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]); }

// A block's values in units of a power of two, so that neither their squares nor those of very small or large
// values leave the range of float. The largest weight lies in [1, 2) too, and none is quite 0: an element
// that counts for nothing still gets a code near its value.
struct FitBlock {
  alignas(32) float x[kMaxBlockLength];
  alignas(32) float w[kMaxBlockLength];
  int length;
  float unit;     // value = x · unit
  float inverse;  // 1 / unit

  // importance: null, or `length` numbers.
  FitBlock(const float* values, const float* importance, int block_length);
};

// Groups whose largest value is below this, in the block's unit, are taken for zeros.
inline constexpr float kNothing = 0x1p-40f;

// A scale as a block stores it: 16 bits, and their value in the block's unit.
struct HalfScale {
  uint16_t bits;
  float value;
};
inline HalfScale FromBits(uint16_t bits, const FitBlock& block) {
  return {bits, F16ToF32(bits) * block.inverse};
}
// Nearest; at most the largest finite one.
inline HalfScale ToHalfScale(float scale, const FitBlock& block) {
  uint16_t bits = F32ToF16(scale * block.unit);
  if ((bits & 0x7fffu) > 0x7bffu) bits = static_cast<uint16_t>((bits & 0x8000u) | 0x7bffu);
  return FromBits(bits, block);
}
// The neighbour away from 0 (step 1) or towards it (step −1); itself where there is none.
inline HalfScale Neighbour(const HalfScale& scale, int step, const FitBlock& block) {
  const int magnitude = std::clamp((scale.bits & 0x7fff) + step, 0, 0x7bff);
  return FromBits(static_cast<uint16_t>((scale.bits & 0x8000) | magnitude), block);
}

// For a scale that groups multiply with integers: never smaller than asked for where halves are coarse,
// because integers make up for what is too large, and nothing for what is too small.
inline HalfScale ToGroupScale(float scale, const FitBlock& block) {
  const HalfScale half = ToHalfScale(scale, block);
  const bool coarse = (half.bits & 0x7c00) == 0;
  return coarse && std::fabs(half.value) < std::fabs(scale) ? Neighbour(half, 1, block) : half;
}

// --- Sets of codes: which code is nearest to a value. Float is float or Lanes. ---

// Round to nearest, ties to even, for |v| < 2^22: what adding and taking away 1.5 · 2^23 does.
template <typename Float>
Float RoundToNearest(Float v) {
  return (v + 0x1.8p23f) - 0x1.8p23f;
}

// All integers from kLow to kHigh.
template <int kLow, int kHigh>
struct UniformCodes {
  template <typename Float>
  static Float Nearest(Float v) {
    const Float low = Float() + static_cast<float>(kLow), high = Float() + static_cast<float>(kHigh);
    v = v < low ? low : v;
    v = v > high ? high : v;
    return RoundToNearest(v);
  }
};

// A few integers in ascending order.
template <const auto& kLevels>
struct TableCodes {
  template <typename Float>
  static Float Nearest(Float v) {
    Float code = Float() + static_cast<float>(kLevels[0]);
    for (size_t k = 1; k < kLevels.size(); ++k) {
      const Float middle = Float() + 0.5f * static_cast<float>(kLevels[k - 1] + kLevels[k]);
      const Float step = Float() + static_cast<float>(kLevels[k] - kLevels[k - 1]);
      code += v > middle ? step : Float();
    }
    return code;
  }
};

// --- Least squares for one scale. ---

// What is left of x ≈ d · c with the nearest codes c, and how it depends on d.
struct Residual {
  float error;  // Σ w r²,  r = x − d · c
  float slope;  // Σ w r c
  float curve;  // Σ w c²

  // The best d for these codes is d + Step(), its error BestError().
  float Step() const { return curve > 0 ? slope / curve : 0; }
  float BestError() const { return curve > 0 ? error - slope * (slope / curve) : error; }
};

inline float Inverse(float d) { return std::fabs(d) > 0x1p-100f ? 1 / d : 0; }

// length is a multiple of 4.
template <typename Codes>
Residual Measure(const float* x, const float* w, int length, float d) {
  const float inverse = Inverse(d);
  Lanes error{}, slope{}, curve{};
  for (int i = 0; i < length; i += kLanes) {
    const Lanes value = Load(x + i), weight = Load(w + i);
    const Lanes code = Codes::Nearest(value * inverse);
    const Lanes rest = value - d * code, weighted = weight * rest, weighted_code = weight * code;
    error += weighted * rest;
    slope += weighted * code;
    curve += weighted_code * code;
  }
  return {Fold(error), Fold(slope), Fold(curve)};
}

template <typename Codes>
void PutCodes(const float* x, int length, float d, int8_t* codes) {
  const float inverse = Inverse(d);
  for (int i = 0; i < length; ++i) codes[i] = static_cast<int8_t>(Codes::Nearest(x[i] * inverse));
}

struct Fit {
  float scale = 0;
  float error = 0;
};

// The element of the largest magnitude, with its sign.
inline float Largest(const float* x, int length) {
  float largest = 0;
  for (int i = 0; i < length; ++i) {
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  }
  return largest;
}

// The best scale found for x ≈ scale · code: tries scales that bring the largest element to each of the
// `targets` (in codes), takes the best codes' own best scale, and goes on from there while that helps.
template <typename Codes>
Fit FitScale(const float* x, const float* w, int length, std::span<const float> targets) {
  Fit best;
  for (int i = 0; i < length; ++i) best.error += w[i] * x[i] * x[i];
  const float largest = Largest(x, length);
  if (std::fabs(largest) < kNothing) return best;
  const auto consider = [&](float scale) {
    const Residual residual = Measure<Codes>(x, w, length, scale);
    const float error = residual.BestError();
    if (!(error < best.error)) return false;
    best = {scale + residual.Step(), error};
    return true;
  };
  for (const float target : targets) consider(largest / target);
  for (int round = 0; round < 4 && consider(best.scale); ++round) continue;
  return best;
}

}  // namespace sluice::formats
