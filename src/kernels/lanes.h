// The 16 virtual lanes of every float reduction (docs/arithmetic.md), as an array: for scalar code.
//
// Element i goes to lane i mod 16; lanes start at +0 and are folded 8, 4, 2, 1 at the end. A row whose length
// is not a multiple of 16 acts as if zeros followed.
#pragma once

#include <cmath>
#include <cstdint>

namespace sluice::kernels {

inline constexpr int kLanes = 16;

struct Lanes {
  float lane[kLanes] = {};

  float Fold() const {
    float a[kLanes];
    for (int j = 0; j < kLanes; ++j) a[j] = lane[j];
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j) a[j] = a[j] + a[j + half];
    }
    return a[0];
  }
};

// Σ16 a(i) · b(i) for i in [0, n), one fma each. `a` and `b` give the element at an index.
template <typename A, typename B>
float Dot16(int64_t n, A a, B b) {
  Lanes lanes;
  for (int64_t i = 0; i < (n + kLanes - 1) / kLanes * kLanes; ++i) {
    const bool inside = i < n;
    float& lane = lanes.lane[i % kLanes];
    lane = std::fma(inside ? a(i) : 0.0f, inside ? b(i) : 0.0f, lane);
  }
  return lanes.Fold();
}

}  // namespace sluice::kernels
