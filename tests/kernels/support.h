// What the kernel tests share: seeded numbers, rows of weights of every format, activations, and the
// comparison of bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "formats/dtype.h"
#include "kernels/kernels.h"
#include "platform/cpu_features.h"

namespace sluice::kernels {

// splitmix64: the same numbers on every machine.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>((Next() >> 32) * n >> 32); }
  // Uniform in [−1, 1).
  float Signed() { return static_cast<float>(static_cast<int32_t>(Next() >> 40) - (1 << 23)) * 0x1p-23f; }
  // Bell-shaped, variance about 1.
  float Bell() { return (Signed() + Signed() + Signed()) * 1.0f; }

 private:
  uint64_t state_;
};

enum class WeightKind {
  kSane,       // random codes, scales of ordinary size
  kAllBits,    // every bit random: all magnitudes of scales, infinities and NaNs too
  kLowest,     // all code bits 0, sane scales
  kHighest,    // all code bits 1
  kMinus128,   // all code bytes 0x80
  kLargest,    // random codes, the largest finite scales
  kSubnormal,  // random codes, subnormal scales
};
inline constexpr WeightKind kWeightKinds[] = {
    WeightKind::kSane,     WeightKind::kAllBits, WeightKind::kLowest,   WeightKind::kHighest,
    WeightKind::kMinus128, WeightKind::kLargest, WeightKind::kSubnormal};

enum class InputKind {
  kBell,  // ordinary
  kZeros,
  kAlternating,  // ±1: every q is ±127
  kHuge,         // up to 1e38
  kTiny,         // around the smallest normal float and below
  kOutlier,      // one large element in a block
  kNonFinite,    // one NaN and one infinity among ordinary numbers
  kOnes,         // every q is 127: sums as large as the codes allow; not in the list below, which is hashed
};
inline constexpr InputKind kInputKinds[] = {InputKind::kBell,     InputKind::kZeros, InputKind::kAlternating,
                                            InputKind::kHuge,     InputKind::kTiny,  InputKind::kOutlier,
                                            InputKind::kNonFinite};

// Every type that a weight matrix may have.
std::vector<formats::DType> WeightTypes();

// `rows` rows of `columns` elements of the format, exactly as many bytes as they take.
std::vector<std::byte> MakeWeights(formats::DType dtype, int64_t rows, int64_t columns, WeightKind kind,
                                   uint64_t seed);
std::vector<float> MakeInput(int64_t n, InputKind kind, uint64_t seed);

// A batch of activation rows in the form that a weight type meets, quantised by `kernels`.
struct Input {
  Input(const Kernels& kernels, formats::DType weight, std::vector<float> x, int64_t batch);
  ActivationRows View() const;

  ActivationKind kind;
  int64_t batch;
  int64_t columns;
  std::vector<float> f32;
  std::vector<int8_t> q;
  std::vector<float> scale;
  std::vector<int16_t> sums;
  std::vector<Reach> reach;
};

// By its definition.
std::vector<Reach> ReachOf(const std::vector<int8_t>& q);

// [batch, rows]
std::vector<float> Multiply(const Kernels& kernels, formats::DType dtype,
                            const std::vector<std::byte>& weights, int64_t rows, const ActivationRows& x);

// The table under test. Tests that take one are run once for each table of the build; those that this
// processor can't run are reported as skipped.
struct TableParam {
  const Kernels* kernels;
  friend void PrintTo(const TableParam& param, std::ostream* out) { *out << param.kernels->name; }
};
std::vector<TableParam> TestedTables();  // all but scalar
std::string TableName(const TableParam& param);
bool Runs(const Kernels& kernels);

// Index of the first element whose bits differ (two NaNs are equal), −1 when there is none.
int64_t FirstDifference(const std::vector<float>& a, const std::vector<float>& b);

#define SLUICE_SKIP_UNLESS_RUNS(table)                        \
  if (!::sluice::kernels::Runs(table)) {                      \
    GTEST_SKIP() << "this processor has no " << (table).name; \
  }

}  // namespace sluice::kernels
