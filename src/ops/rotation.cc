#include "ops/rotation.h"

#include <cmath>
#include <iterator>

#include "kernels/kernels.h"

namespace sluice::ops {

namespace {

// The first 1024 binary digits of the fractional part of π: numbers that nobody has chosen.
constexpr uint32_t kPi[] = {
    0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89,
    0x452821E6, 0x38D01377, 0xBE5466CF, 0x34E90C6C, 0xC0AC29B7, 0xC97C50DD, 0x3F84D5B5, 0xB5470917,
    0x9216D5D9, 0x8979FB1B, 0xD1310BA6, 0x98DFB5AC, 0x2FFD72DB, 0xD01ADFB7, 0xB8E1AFED, 0x6A267E96,
    0xBA7C9045, 0xF12C7F99, 0x24A19947, 0xB3916CF7, 0x0801F2E2, 0x858EFC16, 0x636920D8, 0x71574E69,
};
constexpr int64_t kDigits = 32;  // of a word, the highest first
static_assert(std::size(kPi) * kDigits >= kernels::kMaxHeadDim);

// Multiplies by the signs: −1 where π has a one.
void Flip(float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const bool negative = kPi[i / kDigits] >> (kDigits - 1 - i % kDigits) & 1;
    x[i] = negative ? -x[i] : x[i];
  }
}

// One stage of the butterfly: pairs `stride` apart.
void Stage(float* x, int64_t length, int64_t stride) {
  for (int64_t first = 0; first < length; first += 2 * stride) {
    for (int64_t i = first; i < first + stride; ++i) {
      const float a = x[i];
      const float b = x[i + stride];
      x[i] = a + b;
      x[i + stride] = a - b;
    }
  }
}

// Its own inverse.
void Hadamard(float* x, int64_t n) {
  const int64_t length = n & -n;
  const float scale = 1.0f / std::sqrt(static_cast<float>(length));
  for (float* run = x; run < x + n; run += length) {
    for (int64_t stride = 1; stride < length; stride *= 2) Stage(run, length, stride);
    for (int64_t i = 0; i < length; ++i) run[i] = run[i] * scale;
  }
}

}  // namespace

void Rotate(float* x, int64_t n) {
  Flip(x, n);
  Hadamard(x, n);
}

void RotateBack(float* x, int64_t n) {
  Hadamard(x, n);
  Flip(x, n);
}

}  // namespace sluice::ops
