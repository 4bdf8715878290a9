// The constants and the exact order of operations of the canonical float functions (math.h). This file is the
// definition: math.cc computes it one number at a time, the SIMD twins in kernels/ a register at a time, and
// both give the same bits. Every step is one correctly rounded operation (fma, +, −, ×, ÷), a bit operation
// or a select; "select" takes one of two computed values, so a twin may compute both sides or branch.
//
// The polynomials are minimax fits of our own, the coefficients rounded to float one after another, from the
// lowest power up, with the rest fitted again each time. All are evaluated by Horner from the last
// coefficient down: p = c[n]; p = fma(p, x, c[n−1]); … p = fma(p, x, c[0]).
#pragma once

namespace sluice::math_constants {

// Exp(x): e^x
//   t = fma(x, kLog2E, kRoundMagic)          n = round-half-even(x·log2 e) stands in t's low bits
//   n = t − kRoundMagic
//   r = fma(n, −kLn2Hi, x)                   exact
//   r = fma(n, −kLn2Lo, r)                   |r| ≤ 0.3467
//   p = Horner(kExpPoly, r)                  e^r, degree 6
//   y = float(bits(p) + (bits(t) << 23))     times 2^n: the magic's own bits leave at the top
//   y = x ≤ kExpMax ? y : x + infinity       infinity above; a NaN is not ≤, and stays NaN
//   y = x < kExpMin ? 0 : y                  no subnormal results
inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kRoundMagic = 0x1.8p+23f;
inline constexpr float kLn2Hi = 0x1.62e430p-1f;  // ln 2 = hi + lo
inline constexpr float kLn2Lo = -0x1.05c610p-29f;
inline constexpr float kExpPoly[7] = {1.0f,           1.0f,           0x1.fffffcp-2f, 0x1.55548cp-3f,
                                      0x1.555858p-5f, 0x1.123de6p-7f, 0x1.6ac746p-10f};
inline constexpr float kExpMin = -0x1.5d589ep+6f;  // the smallest x with e^x ≥ 2^−126
inline constexpr float kExpMax = 0x1.62e42ep+6f;   // the largest x with e^x finite

// Sigmoid(x) = 1 / (1 + Exp(−x))

// Tanh(x), with a = |x|
//   large = 1 − 2 / (Exp(a + a) + 1)
//   z = a·a;  small = fma(a·z, Horner(kTanhPoly, z), a)
//   y = a > kTanhSplit ? large : small;  the sign bit of x is put on y
inline constexpr float kTanhSplit = 0.625f;
inline constexpr float kTanhPoly[5] = {-0x1.555534p-2f, 0x1.11075ep-3f, -0x1.b842dep-5f, 0x1.524dccp-6f,
                                       -0x1.76850ep-8f};

// Erf(x), with a = |x|
//   t = a > kErfLimit ? kErfLimit : a
//   large = 1 − Exp(−fma(t, Horner(kErfLargePoly, t), t))   the polynomial is −log(erfc t) / t − 1
//   z = a·a;  small = fma(a, Horner(kErfSmallPoly, z), a)
//   y = a > kErfSplit ? large : small;  the sign bit of x is put on y
inline constexpr float kErfSplit = 0.921875f;
inline constexpr float kErfLimit = 4.0f;  // erf rounds to 1 from 3.92 on
inline constexpr float kErfSmallPoly[7] = {0x1.06eba8p-3f, -0x1.812740p-2f,  0x1.ce2d60p-4f, -0x1.b80074p-6f,
                                           0x1.54414cp-8f, -0x1.a5a936p-11f, 0x1.4df126p-14f};
inline constexpr float kErfLargePoly[8] = {0x1.0746a8p-3f,   0x1.457014p-1f, 0x1.af3134p-4f,
                                           -0x1.73a53ep-6f,  0x1.80d09ap-9f, -0x1.b16df0p-15f,
                                           -0x1.7aee1ep-15f, 0x1.4924b8p-18f};

// Softplus(x) = log(1 + e^x)
//   u = Exp(−|x|);  s = u / (u + 2);  z = s·s;  d = s + s     log(1 + u) = 2·atanh(s)
//   y = fma(d·z, Horner(kAtanhPoly, z), d) + (x > 0 ? x : 0)
inline constexpr float kAtanhPoly[5] = {0x1.555558p-2f, 0x1.9996d8p-3f, 0x1.250510p-3f, 0x1.b72bb6p-4f,
                                        0x1.f08b0cp-4f};

// Log(x)
//   subnormal = x < kMinNormal;  v = subnormal ? x · 2^23 : x
//   i = bits(v) − kSqrtHalfBits (as int32);  e = i >> 23 (arithmetic) − (subnormal ? 23 : 0), as float
//   m = float((i & 0x7fffff) + kSqrtHalfBits)               v = m · 2^e, √½ ≤ m < √2
//   f = m − 1;  g = f·f
//   y = (g·f) · Horner(kLogPoly, f)
//   y = fma(e, kLn2Lo, y);  y = fma(−0.5, g, y);  y = f + y;  y = fma(e, kLn2Hi, y)
//   y = x > 0 ? y : (x == 0 ? −infinity : NaN);  y = x == infinity ? infinity : y
inline constexpr float kMinNormal = 0x1p-126f;
inline constexpr unsigned kSqrtHalfBits = 0x3f3504f3u;
inline constexpr float kLogPoly[9] = {0x1.555546p-2f,  -0x1.0000c4p-2f, 0x1.99a6aep-3f,
                                      -0x1.550c24p-3f, 0x1.22cb0ap-3f,  -0x1.033d28p-3f,
                                      0x1.f78428p-4f,  -0x1.a83e9ep-4f, 0x1.5d36aep-5f};

}  // namespace sluice::math_constants
