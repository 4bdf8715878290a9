#include "base/math.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/math_constants.h"

namespace sluice {
namespace {

using namespace math_constants;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kInfinityDouble = std::numeric_limits<double>::infinity();
constexpr double kNaNDouble = std::numeric_limits<double>::quiet_NaN();

// The one operation of libm that is used: correctly rounded by definition, so the same everywhere.
inline float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double Fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <typename T, size_t n>
inline T Horner(const T (&c)[n], T x) {
  T p = c[n - 1];
  for (size_t i = n - 1; i-- > 0;) p = Fma(p, x, c[i]);
  return p;
}

inline float Absolute(float x) { return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7fffffffu); }

// `magnitude` (its sign bit clear) with the sign bit of `sign`.
inline float WithSign(float magnitude, float sign) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) |
                              (std::bit_cast<uint32_t>(sign) & 0x80000000u));
}

}  // namespace

float Exp(float x) {
  const float t = Fma(x, kLog2E, kRoundMagic);
  const float n = t - kRoundMagic;
  const float r = Fma(n, -kLn2Lo, Fma(n, -kLn2Hi, x));
  const float p = Horner(kExpPoly, r);
  float y = std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (std::bit_cast<uint32_t>(t) << 23));
  y = x <= kExpMax ? y : x + kInfinity;
  return x < kExpMin ? 0.0f : y;
}

float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

float Tanh(float x) {
  const float a = Absolute(x);
  const float large = 1.0f - 2.0f / (Exp(a + a) + 1.0f);
  const float z = a * a;
  const float small = Fma(a * z, Horner(kTanhPoly, z), a);
  return WithSign(a > kTanhSplit ? large : small, x);
}

float Erf(float x) {
  const float a = Absolute(x);
  const float t = a > kErfLimit ? kErfLimit : a;
  const float large = 1.0f - Exp(-Fma(t, Horner(kErfLargePoly, t), t));
  const float small = Fma(a, Horner(kErfSmallPoly, a * a), a);
  return WithSign(a > kErfSplit ? large : small, x);
}

float Softplus(float x) {
  const float u = Exp(-Absolute(x));
  const float s = u / (u + 2.0f);
  const float z = s * s;
  const float d = s + s;
  return Fma(d * z, Horner(kAtanhPoly, z), d) + (x > 0 ? x : 0.0f);
}

float Log(float x) {
  const bool subnormal = x < kMinNormal;
  const float v = subnormal ? x * 0x1p23f : x;
  const int32_t i = static_cast<int32_t>(std::bit_cast<uint32_t>(v) - kSqrtHalfBits);
  const float e = static_cast<float>((i >> 23) - (subnormal ? 23 : 0));
  const float m = std::bit_cast<float>((static_cast<uint32_t>(i) & 0x7fffffu) + kSqrtHalfBits);
  const float f = m - 1.0f;
  const float g = f * f;
  float y = (g * f) * Horner(kLogPoly, f);
  y = Fma(e, kLn2Lo, y);
  y = Fma(-0.5f, g, y);
  y = f + y;
  y = Fma(e, kLn2Hi, y);
  y = x > 0 ? y : (x == 0 ? -kInfinity : std::numeric_limits<float>::quiet_NaN());
  return x == kInfinity ? kInfinity : y;
}

// --- double: load-time constants and samplers. Series of Taylor and Maclaurin, argument reduction by fma.
// ---
namespace {

constexpr double kLog2EDouble = 0x1.71547652b82fep+0;
constexpr double kRoundMagicDouble = 0x1.8p+52;

// An unevaluated sum of two doubles: `low` is at most half a unit in the last place of `high`.
struct DoubleDouble {
  double high;
  double low;
};

// a + b without error, in any order of magnitude.
inline DoubleDouble TwoSum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// 2^n, −1022 ≤ n ≤ 1023.
inline double PowerOfTwo(int64_t n) { return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52); }

// e^(x.high + x.low).
double ExpOfSum(DoubleDouble x) {
  static constexpr double kLn2High = 0x1.62e42fefa39efp-1;
  static constexpr double kLn2Low = 0x1.abc9e3b39803fp-56;
  static constexpr double kPoly[14] = {1.0,
                                       1.0,
                                       1.0 / 2,
                                       1.0 / 6,
                                       1.0 / 24,
                                       1.0 / 120,
                                       1.0 / 720,
                                       1.0 / 5040,
                                       1.0 / 40320,
                                       1.0 / 362880,
                                       1.0 / 3628800,
                                       1.0 / 39916800,
                                       1.0 / 479001600,
                                       1.0 / 6227020800};
  if (x.high != x.high) return x.high;
  if (x.high > 709.8) return kInfinityDouble;
  if (x.high < -745.2) return 0;
  const double t = Fma(x.high, kLog2EDouble, kRoundMagicDouble);
  const double n = t - kRoundMagicDouble;
  const double r = Fma(n, -kLn2Low, Fma(n, -kLn2High, x.high)) + x.low;
  const int64_t power = static_cast<int64_t>(n);
  const int64_t half =
      power / 2;  // in two factors: n reaches 1024, and −1075 on the way to subnormal results
  return Horner(kPoly, r) * PowerOfTwo(half) * PowerOfTwo(power - half);
}

// log x to about 2^−58 of its value, for finite x > 0: with x = m·2^e and s = (m − 1) / (m + 1),
// log x = e·ln 2 + 2·(s + s³/3 + s⁵/5 + …), the leading terms kept in two doubles.
DoubleDouble LogOfPositive(double x) {
  static constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 32 bits: e times this is exact
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kPoly[10] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                       1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  static constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdull;
  const bool subnormal = x < 0x1p-1022;
  const double v = subnormal ? x * 0x1p52 : x;
  const int64_t i = static_cast<int64_t>(std::bit_cast<uint64_t>(v) - kSqrtHalf);
  const double e = static_cast<double>((i >> 52) - (subnormal ? 52 : 0));
  const double m = std::bit_cast<double>((static_cast<uint64_t>(i) & 0xfffffffffffffull) + kSqrtHalf);

  const double f = m - 1;  // exact
  const DoubleDouble d = TwoSum(m, 1);
  const double s = f / d.high;
  const double s_low = (Fma(-s, d.high, f) - s * d.low) / d.high;
  const double z = s * s;
  const double tail = 2 * s * z * Horner(kPoly, z) + 2 * z * s_low;
  const DoubleDouble head = TwoSum(e * kLn2High, 2 * s);
  const double low = head.low + (2 * s_low + (tail + e * kLn2Low));
  const double high = head.high + low;
  return {high, low - (high - head.high)};
}

// x − n·π/2 for the nearest integer n; returns n mod 4. |x| < 2^30. The first step is exact; the others keep
// what they round off, so the result is good to about 2^−100 however near x lies to a multiple of π/2.
int ReduceHalfPi(double x, DoubleDouble* reduced) {
  static constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  static constexpr double kPart1 = 0x1.921fb54442d18p+0;  // π/2 = part 1 + part 2 + part 3
  static constexpr double kPart2 = 0x1.1a62633145c07p-54;
  static constexpr double kPart3 = -0x1.f1976b7ed8fbcp-110;
  const double t = Fma(x, kTwoOverPi, kRoundMagicDouble);
  const double n = t - kRoundMagicDouble;
  const double first = Fma(n, -kPart1, x);
  const double second = n * kPart2;
  const double second_low = Fma(n, kPart2, -second);
  const DoubleDouble sum = TwoSum(first, -second);
  const double low = Fma(n, -kPart3, sum.low - second_low);
  reduced->high = sum.high + low;
  reduced->low = low - (reduced->high - sum.high);
  return static_cast<int>(std::bit_cast<uint64_t>(t) & 3);
}

// |r| ≤ π/4.
double SinOfReduced(DoubleDouble r) {
  static constexpr double kPoly[8] = {
      -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
      -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  const double x = r.high;
  const double z = x * x;
  // sin(x + low) = x + (x³·P(z) + low·cos x), with cos x taken as 1 − z/2.
  return x + Fma(x * z, Horner(kPoly, z), r.low * (1 - 0.5 * z));
}

double CosOfReduced(DoubleDouble r) {
  static constexpr double kPoly[8] = {
      1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
      1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};
  const double x = r.high;
  const double z = x * x;
  const double half_z = 0.5 * z;
  const double head = 1 - half_z;
  // The rounding error of `head` is taken along: 1 − head and the difference are exact.
  return head + (((1 - head) - half_z) + Fma(z * z, Horner(kPoly, z), -x * r.low));
}

// sin(x + quarter_turns·π/2).
double SinOfTurned(double x, int quarter_turns) {
  if (!(x > -0x1p30 && x < 0x1p30)) return kNaNDouble;
  DoubleDouble r;
  const int quadrant = (ReduceHalfPi(x, &r) + quarter_turns) & 3;
  const double y = (quadrant & 1) != 0 ? CosOfReduced(r) : SinOfReduced(r);
  return (quadrant & 2) != 0 ? -y : y;
}

}  // namespace

double ExpDouble(double x) { return ExpOfSum({x, 0}); }

double LogDouble(double x) {
  if (!(x > 0)) return x == 0 ? -kInfinityDouble : kNaNDouble;
  if (x == kInfinityDouble) return x;
  return LogOfPositive(x).high;
}

double PowDouble(double base, double exponent) {
  if (!(base > 0) || base == kInfinityDouble) return kNaNDouble;
  const DoubleDouble log = LogOfPositive(base);
  const double high = exponent * log.high;
  if (!(high > -1000 && high < 1000)) return ExpDouble(high);
  return ExpOfSum({high, Fma(exponent, log.high, -high) + exponent * log.low});
}

double SinDouble(double x) { return SinOfTurned(x, 0); }
double CosDouble(double x) { return SinOfTurned(x, 1); }

}  // namespace sluice
