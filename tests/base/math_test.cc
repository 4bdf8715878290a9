#include "base/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/hash.h"

namespace sluice {
namespace {

using FloatFunction = float (*)(float);
using DoubleFunction = double (*)(double);
using Truth = long double (*)(long double);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kInfDouble = std::numeric_limits<double>::infinity();

// Samples everywhere: every `step`-th bit pattern of positive floats in [low, high], with both signs.
template <typename Visit>
void ForEachFloat(float low, float high, uint32_t step, Visit visit) {
  const uint32_t first = std::bit_cast<uint32_t>(low);
  const uint32_t last = std::bit_cast<uint32_t>(high);
  for (uint64_t bits = first; bits <= last; bits += step) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    visit(x);
    visit(-x);
  }
}

// The distance in units in the last place of the float nearest to `truth`.
double UlpError(float value, long double truth) {
  const float nearest = std::fabs(static_cast<float>(truth));
  if (static_cast<float>(truth) == value) return 0;
  const float next = std::nextafter(nearest, nearest == std::numeric_limits<float>::max() ? 0.0f : kInf);
  const long double ulp = std::fabs(static_cast<long double>(next) - nearest);
  return static_cast<double>(std::fabs((static_cast<long double>(value) - truth) / ulp));
}
double UlpError(double value, long double truth) {
  if (static_cast<double>(truth) == value) return 0;
  const double nearest = std::fabs(static_cast<double>(truth));
  const long double ulp = static_cast<long double>(std::nextafter(nearest, kInfDouble)) - nearest;
  return static_cast<double>(std::fabs((static_cast<long double>(value) - truth) / ulp));
}

double WorstUlp(FloatFunction function, Truth truth, float low, float high, uint32_t step,
                bool negative = true) {
  double worst = 0;
  float where = 0;
  ForEachFloat(low, high, step, [&](float x) {
    if (!negative && x < 0) return;
    const double error = UlpError(function(x), truth(x));
    if (!(error <= worst)) {
      worst = error;
      where = x;
    }
  });
  ::testing::Test::RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_EQ(worst, worst) << "not a number at " << where;
  return worst;
}

long double SigmoidTruth(long double x) { return 1 / (1 + std::exp(-x)); }
long double SoftplusTruth(long double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
long double ExpTruth(long double x) { return std::exp(x); }
long double TanhTruth(long double x) { return std::tanh(x); }
long double ErfTruth(long double x) { return std::erf(x); }
long double LogTruth(long double x) { return std::log(x); }

TEST(MathTest, ExpIsWithinTwoUlp) { EXPECT_LE(WorstUlp(Exp, ExpTruth, 0x1p-30f, 87.336f, 1801), 1.0); }

TEST(MathTest, ExpAtItsEnds) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(kInf), kInf);
  EXPECT_EQ(Exp(-kInf), 0.0f);
  EXPECT_TRUE(std::isnan(Exp(kNaN)));
  EXPECT_EQ(Exp(std::numeric_limits<float>::max()), kInf);
  EXPECT_EQ(Exp(std::numeric_limits<float>::lowest()), 0.0f);
  // Every float around both thresholds: finite up to the last, infinity after; normal down to the last, 0
  // after.
  float x = 88.7228f;
  for (int i = 0; i < 64; ++i, x = std::nextafter(x, kInf)) {
    const float truth = static_cast<float>(std::exp(static_cast<long double>(x)));
    if (std::isinf(truth)) {
      EXPECT_EQ(Exp(x), kInf) << x;
    } else {
      EXPECT_LE(UlpError(Exp(x), std::exp(static_cast<long double>(x))), 1.0) << x;
    }
  }
  x = -87.3363f;
  int zeros = 0;
  for (int i = 0; i < 64; ++i, x = std::nextafter(x, -kInf)) {
    const float y = Exp(x);
    if (y == 0) {
      ++zeros;
      EXPECT_LT(std::exp(static_cast<long double>(x)), 0x1p-126L) << x;
    } else {
      EXPECT_GE(y, 0x1p-126f) << x;
      EXPECT_LE(UlpError(y, std::exp(static_cast<long double>(x))), 1.0) << x;
    }
  }
  EXPECT_GT(zeros, 0);
  EXPECT_LT(zeros, 64);
}

TEST(MathTest, TanhIsWithinFourUlp) {
  EXPECT_LE(WorstUlp(Tanh, TanhTruth, 0x1p-126f, 100.0f, 2401), 2.0);
  EXPECT_EQ(Tanh(kInf), 1.0f);
  EXPECT_EQ(Tanh(-kInf), -1.0f);
  EXPECT_EQ(Tanh(std::numeric_limits<float>::max()), 1.0f);
  EXPECT_TRUE(std::isnan(Tanh(kNaN)));
  EXPECT_TRUE(std::signbit(Tanh(-0.0f)));
  EXPECT_FALSE(std::signbit(Tanh(0.0f)));
}

TEST(MathTest, ErfIsWithinFourUlp) {
  EXPECT_LE(WorstUlp(Erf, ErfTruth, 0x1p-120f, 10.0f, 2401), 2.0);
  EXPECT_EQ(Erf(kInf), 1.0f);
  EXPECT_EQ(Erf(-kInf), -1.0f);
  EXPECT_TRUE(std::isnan(Erf(kNaN)));
  EXPECT_TRUE(std::signbit(Erf(-0.0f)));
}

TEST(MathTest, SigmoidIsWithinFourUlp) {
  EXPECT_LE(WorstUlp(Sigmoid, SigmoidTruth, 0x1p-30f, 87.0f, 1801), 2.5);
  EXPECT_EQ(Sigmoid(kInf), 1.0f);
  EXPECT_EQ(Sigmoid(-kInf), 0.0f);
  EXPECT_EQ(Sigmoid(0.0f), 0.5f);
  EXPECT_TRUE(std::isnan(Sigmoid(kNaN)));
}

TEST(MathTest, SoftplusIsWithinFourUlp) {
  EXPECT_LE(WorstUlp(Softplus, SoftplusTruth, 0x1p-30f, 87.33f, 1801), 3.5);
  EXPECT_EQ(Softplus(1000.0f), 1000.0f);
  EXPECT_EQ(Softplus(-1000.0f), 0.0f);
  EXPECT_EQ(Softplus(kInf), kInf);
  EXPECT_EQ(Softplus(-kInf), 0.0f);
  EXPECT_TRUE(std::isnan(Softplus(kNaN)));
}

TEST(MathTest, LogIsWithinTwoUlp) {
  EXPECT_LE(WorstUlp(Log, LogTruth, 0x1p-149f, std::numeric_limits<float>::max(), 3001, false), 1.0);
  EXPECT_LE(WorstUlp(Log, LogTruth, 0.5f, 2.0f, 101, false), 1.0);
  EXPECT_EQ(Log(1.0f), 0.0f);
  EXPECT_EQ(Log(0.0f), -kInf);
  EXPECT_EQ(Log(-0.0f), -kInf);
  EXPECT_EQ(Log(kInf), kInf);
  EXPECT_TRUE(std::isnan(Log(-1.0f)));
  EXPECT_TRUE(std::isnan(Log(-kInf)));
  EXPECT_TRUE(std::isnan(Log(kNaN)));
}

// Doubles spread over [low, high]; the factor keeps their low bits busy.
std::vector<double> Spread(double low, double high, int count) {
  std::vector<double> values;
  for (int i = 0; i <= count; ++i) values.push_back(low + (high - low) * (i / static_cast<double>(count)));
  return values;
}

double WorstUlp(DoubleFunction function, Truth truth, const std::vector<double>& samples) {
  double worst = 0;
  for (const double x : samples) worst = std::fmax(worst, UlpError(function(x), truth(x)));
  ::testing::Test::RecordProperty("worst_ulp", std::to_string(worst));
  return worst;
}

TEST(MathTest, ExpDoubleIsWithinOneUlp) {
  EXPECT_LE(WorstUlp(ExpDouble, ExpTruth, Spread(-708, 709.7, 30011)), 1.0);
  EXPECT_LE(WorstUlp(ExpDouble, ExpTruth, Spread(-1, 1, 30011)), 1.0);
  EXPECT_LE(WorstUlp(ExpDouble, ExpTruth, Spread(-745, -708, 997)), 1.0);  // subnormal results
  EXPECT_EQ(ExpDouble(0), 1);
  EXPECT_EQ(ExpDouble(710), kInfDouble);
  EXPECT_EQ(ExpDouble(kInfDouble), kInfDouble);
  EXPECT_EQ(ExpDouble(-746), 0);
  EXPECT_EQ(ExpDouble(-kInfDouble), 0);
  EXPECT_TRUE(std::isnan(ExpDouble(std::nan(""))));
}

TEST(MathTest, LogDoubleIsWithinOneUlp) {
  EXPECT_LE(WorstUlp(LogDouble, LogTruth, Spread(0.1, 3, 30011)), 0.6);
  EXPECT_LE(WorstUlp(LogDouble, LogTruth, Spread(1, 1e9, 30011)), 0.6);
  EXPECT_LE(WorstUlp(LogDouble, LogTruth, Spread(1 - 1e-6, 1 + 1e-6, 997)), 0.6);
  EXPECT_LE(WorstUlp(LogDouble, LogTruth, Spread(0x1p-1074, 0x1p-1000, 997)), 0.6);
  EXPECT_EQ(LogDouble(1), 0);
  EXPECT_EQ(LogDouble(0), -kInfDouble);
  EXPECT_EQ(LogDouble(kInfDouble), kInfDouble);
  EXPECT_TRUE(std::isnan(LogDouble(-1)));
  EXPECT_TRUE(std::isnan(LogDouble(std::nan(""))));
}

TEST(MathTest, PowDoubleIsWithinTwoUlpForRope) {
  double worst = 0;
  for (const double base : {1.5, 10000.0, 500000.0, 1e6, 1e7, 1e9, 0.7, 2.0}) {
    for (const int dim : {32, 64, 80, 96, 128, 256, 512}) {
      for (int i = 0; i < dim; i += 2) {
        const double exponent = -static_cast<double>(i) / dim;
        worst = std::fmax(
            worst, UlpError(PowDouble(base, exponent),
                            std::pow(static_cast<long double>(base), static_cast<long double>(exponent))));
      }
    }
  }
  EXPECT_LE(worst, 1.0);
  EXPECT_EQ(PowDouble(10000, 0), 1);
  EXPECT_EQ(PowDouble(2, 10), 1024);
  EXPECT_EQ(PowDouble(1e300, 1e300), kInfDouble);
  EXPECT_EQ(PowDouble(1e300, -1e300), 0);
  EXPECT_TRUE(std::isnan(PowDouble(0, 1)));
  EXPECT_TRUE(std::isnan(PowDouble(-2, 2)));
  EXPECT_TRUE(std::isnan(PowDouble(kInfDouble, 1)));
  EXPECT_TRUE(std::isnan(PowDouble(2, std::nan(""))));
}

TEST(MathTest, SinAndCosAreWithinOneUlp) {
  const Truth sine = [](long double x) { return std::sin(x); };
  const Truth cosine = [](long double x) { return std::cos(x); };
  for (const auto& samples :
       {Spread(-4, 4, 30011), Spread(-1e6, 1e6, 30011), Spread(0, 1073741823.9, 30011)}) {
    EXPECT_LE(WorstUlp(SinDouble, sine, samples), 1.0);
    EXPECT_LE(WorstUlp(CosDouble, cosine, samples), 1.0);
  }
  // The doubles next to multiples of π/2, where everything cancels.
  std::vector<double> near;
  for (int n = 1; n < 680'000'000; n = n * 3 / 2 + 1) {
    const double x = n * 0x1.921fb54442d18p+0;
    near.insert(near.end(), {x, std::nextafter(x, 0.0), std::nextafter(x, 1e300)});
  }
  EXPECT_LE(WorstUlp(SinDouble, sine, near), 1.0);
  EXPECT_LE(WorstUlp(CosDouble, cosine, near), 1.0);
  EXPECT_EQ(SinDouble(0), 0);
  EXPECT_EQ(CosDouble(0), 1);
  EXPECT_TRUE(std::isnan(SinDouble(0x1p30)));
  EXPECT_TRUE(std::isnan(CosDouble(kInfDouble)));
  EXPECT_TRUE(std::isnan(SinDouble(std::nan(""))));
}

// Golden hashes: the bits themselves, which every machine and compiler must reproduce. A change here changes
// every logit that Sluice has ever computed.
uint64_t HashOfSweep(FloatFunction function) {
  std::vector<float> values;
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 65521)
    values.push_back(function(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  for (int i = -20000; i <= 20000; ++i) values.push_back(function(static_cast<float>(i) * 0x1.9p-8f));
  return HashFloats(values);
}

uint64_t HashOfSweep(DoubleFunction function, double low, double high) {
  uint64_t hash = kHashSeed;
  for (const double x : Spread(low, high, 20011)) {
    const double y = function(x);
    hash = HashBytes(std::as_bytes(std::span(&y, 1)), hash);
  }
  return hash;
}

TEST(MathTest, GoldenBits) {
  EXPECT_EQ(HashOfSweep(Exp), 0x260f5b8c284a2318ull);
  EXPECT_EQ(HashOfSweep(Tanh), 0xc1642cf69d3d419eull);
  EXPECT_EQ(HashOfSweep(Sigmoid), 0xa5d586e34c8630f4ull);
  EXPECT_EQ(HashOfSweep(Erf), 0xcdd2e015f98784f0ull);
  EXPECT_EQ(HashOfSweep(Softplus), 0x516ee0cb2551d154ull);
  EXPECT_EQ(HashOfSweep(Log), 0x8f338cec262ffcdbull);
  EXPECT_EQ(HashOfSweep(ExpDouble, -746, 710), 0x8f36d9c81f2a35c5ull);
  EXPECT_EQ(HashOfSweep(LogDouble, 0, 100), 0x0542484706af9a30ull);
  EXPECT_EQ(HashOfSweep([](double x) { return PowDouble(500000, x); }, -1, 1), 0xed15a9c383e140b8ull);
  EXPECT_EQ(HashOfSweep(SinDouble, -1e6, 1e6), 0xe87290fe98408ddeull);
  EXPECT_EQ(HashOfSweep(CosDouble, -1e6, 1e6), 0x903eda578062a278ull);
}

}  // namespace
}  // namespace sluice
