// Every table against scalar, bit for bit: what works on one row. And scalar against plain double arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/half.h"
#include "kernels/support.h"

namespace sluice::kernels {
namespace {

const Kernels& Scalar() { return *FindKernels("scalar"); }
constexpr int64_t kLengths[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 100, 257, 1024};

class RowsTest : public testing::TestWithParam<TableParam> {
 protected:
  void SetUp() override { SLUICE_SKIP_UNLESS_RUNS(*GetParam().kernels); }
  const Kernels& kernels() const { return *GetParam().kernels; }

  // `run(kernels, x, y)` writes y from x, both of n elements; all kinds of numbers, in place too.
  void ExpectSameRows(const std::function<void(const Kernels&, const std::vector<float>&, float*)>& run) {
    for (const int64_t n : kLengths) {
      for (const InputKind kind : kInputKinds) {
        const auto x = MakeInput(n, kind, static_cast<uint64_t>(n));
        std::vector<float> expected(x.size()), found(x.size());
        run(Scalar(), x, expected.data());
        run(kernels(), x, found.data());
        ASSERT_EQ(FirstDifference(expected, found), -1) << "n " << n << ", input " << static_cast<int>(kind);
        std::vector<float> in_place = x;
        run(kernels(), in_place, in_place.data());
        ASSERT_EQ(FirstDifference(expected, in_place), -1) << "in place, n " << n;
      }
    }
  }

  using Gate = void (*Kernels::*)(const float*, const float*, int64_t, float*);
  void ExpectSameGate(Gate gate) {
    ExpectSameRows([&](const Kernels& k, const std::vector<float>& x, float* y) {
      (k.*gate)(x.data(), nullptr, static_cast<int64_t>(x.size()), y);
    });
    ExpectSameRows([&](const Kernels& k, const std::vector<float>& x, float* y) {
      const auto up = MakeInput(static_cast<int64_t>(x.size()), InputKind::kBell, 77);
      (k.*gate)(x.data(), up.data(), static_cast<int64_t>(x.size()), y);
    });
  }
};

TEST_P(RowsTest, QuantizeRow) {
  for (const ActivationKind kind :
       {ActivationKind::kQ8x32, ActivationKind::kQ8x64, ActivationKind::kQ8x128, ActivationKind::kQ8x256}) {
    const int64_t block = BlockLength(kind);
    for (const int64_t blocks : {1, 2, 3, 9}) {
      for (const InputKind input : kInputKinds) {
        const int64_t n = blocks * block;
        const auto x = MakeInput(n, input, static_cast<uint64_t>(n));
        const auto size = static_cast<size_t>(n);
        std::vector<int8_t> q0(size), q1(size);
        std::vector<float> scale0(static_cast<size_t>(blocks)), scale1(scale0.size());
        std::vector<int16_t> sums0(size / 16), sums1(size / 16);
        Scalar().quantize_row(kind, x.data(), n, q0.data(), scale0.data(), sums0.data());
        kernels().quantize_row(kind, x.data(), n, q1.data(), scale1.data(), sums1.data());
        ASSERT_EQ(q0, q1);
        ASSERT_EQ(sums0, sums1);
        ASSERT_EQ(FirstDifference(scale0, scale1), -1);
      }
    }
  }
}

// Ties go to the even neighbour: 127 levels of 2 make every odd number a tie.
TEST_P(RowsTest, QuantizeRowRoundsTiesToEven) {
  std::vector<float> x(32, 0.0f);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 15.0f;
  x[31] = 254.0f;
  std::vector<int8_t> q(32);
  std::vector<int16_t> sums(2);
  float scale;
  kernels().quantize_row(ActivationKind::kQ8x32, x.data(), 32, q.data(), &scale, sums.data());
  EXPECT_EQ(scale, 2.0f);
  EXPECT_EQ(q[16], 0);  // 0.5
  EXPECT_EQ(q[18], 2);  // 1.5
  EXPECT_EQ(q[14], 0);  // −0.5
  EXPECT_EQ(q[31], 127);
}

TEST_P(RowsTest, F32ToF16) {
  std::vector<float> x;
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    x.push_back(std::bit_cast<float>(bits << 16 | (bits * 2654435761u >> 16)));
  for (uint32_t half = 0; half < 0x10000;
       ++half) {  // every half, and a hair to both sides of halfway to the next
    const float value = F16ToF32(static_cast<uint16_t>(half));
    const float next = F16ToF32(static_cast<uint16_t>(half + 1));
    x.push_back(value);
    x.push_back(value + (next - value) * 0.5f);
    x.push_back(std::nextafter(x.back(), next));
  }
  std::vector<uint16_t> found(x.size());
  kernels().f32_to_f16(x.data(), static_cast<int64_t>(x.size()), found.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const bool both_nan = x[i] != x[i] && F16ToF32(found[i]) != F16ToF32(found[i]);
    ASSERT_TRUE(both_nan || found[i] == F32ToF16(x[i])) << x[i];
  }
}

TEST_P(RowsTest, Norms) {
  const auto weight_of = [](size_t n) { return MakeInput(static_cast<int64_t>(n), InputKind::kBell, 5); };
  for (const bool weighted : {false, true}) {
    ExpectSameRows([&](const Kernels& k, const std::vector<float>& x, float* y) {
      const auto weight = weight_of(x.size());
      k.rms_norm(x.data(), weighted ? weight.data() : nullptr, static_cast<int64_t>(x.size()), 1e-6f, y);
    });
    for (const bool biased : {false, true}) {
      ExpectSameRows([&](const Kernels& k, const std::vector<float>& x, float* y) {
        const auto weight = weight_of(x.size());
        k.layer_norm(x.data(), weighted ? weight.data() : nullptr, biased ? weight.data() : nullptr,
                     static_cast<int64_t>(x.size()), 1e-5f, y);
      });
    }
  }
}

TEST_P(RowsTest, Silu) { ExpectSameGate(&Kernels::silu); }
TEST_P(RowsTest, GeluTanh) { ExpectSameGate(&Kernels::gelu_tanh); }
TEST_P(RowsTest, GeluErf) { ExpectSameGate(&Kernels::gelu_erf); }
TEST_P(RowsTest, ReluSquared) { ExpectSameGate(&Kernels::relu_squared); }

// The elementary functions behind the gates, over the whole range of floats.
TEST_P(RowsTest, GatesOverAllMagnitudes) {
  std::vector<float> x;
  for (uint32_t bits = 0; bits < 0xff800000u - 65537u; bits += 65537u)
    x.push_back(std::bit_cast<float>(bits));
  for (int i = -2000; i <= 2000; ++i) x.push_back(static_cast<float>(i) * 0.05f);
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> expected(x.size()), found(x.size());
  for (const Gate gate : {&Kernels::silu, &Kernels::gelu_tanh, &Kernels::gelu_erf, &Kernels::relu_squared}) {
    (Scalar().*gate)(x.data(), nullptr, n, expected.data());
    (kernels().*gate)(x.data(), nullptr, n, found.data());
    const int64_t at = FirstDifference(expected, found);
    EXPECT_EQ(at, -1) << x[static_cast<size_t>(at)];
  }
  Scalar().softcap(x.data(), n, 30.0f, expected.data());
  kernels().softcap(x.data(), n, 30.0f, found.data());
  EXPECT_EQ(FirstDifference(expected, found), -1);
}

TEST_P(RowsTest, Softcap) {
  ExpectSameRows([](const Kernels& k, const std::vector<float>& x, float* y) {
    k.softcap(x.data(), static_cast<int64_t>(x.size()), 1.5f, y);
  });
}

TEST_P(RowsTest, Rope) {
  for (const int64_t pairs : {1, 2, 3, 4, 5, 8, 11, 16, 32, 64}) {
    const auto cos = MakeInput(pairs, InputKind::kBell, 1);
    const auto sin = MakeInput(pairs, InputKind::kBell, 2);
    for (const InputKind kind : kInputKinds) {
      const auto x = MakeInput(2 * pairs, kind, 3);
      auto expected = x, found = x;
      Scalar().rope_interleaved(expected.data(), cos.data(), sin.data(), pairs);
      kernels().rope_interleaved(found.data(), cos.data(), sin.data(), pairs);
      ASSERT_EQ(FirstDifference(expected, found), -1) << pairs << " pairs, interleaved";
      expected = found = x;
      Scalar().rope_half(expected.data(), cos.data(), sin.data(), pairs);
      kernels().rope_half(found.data(), cos.data(), sin.data(), pairs);
      ASSERT_EQ(FirstDifference(expected, found), -1) << pairs << " pairs, half-split";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, RowsTest, testing::ValuesIn(TestedTables()),
                         [](const auto& test) { return TableName(test.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RowsTest);

// --- scalar is what its name says ---

TEST(ScalarRows, QuantizedRowIsWithinHalfAStep) {
  const auto x = MakeInput(1024, InputKind::kBell, 11);
  const Input input(Scalar(), formats::DType::kQ8_0, x, 1);
  for (size_t i = 0; i < x.size(); ++i) {
    const float scale = input.scale[i / 32];
    ASSERT_LE(std::fabs(x[i] - scale * static_cast<float>(input.q[i])), scale * 0.50001f);
    ASSERT_GE(input.q[i], -127);
  }
}

TEST(ScalarRows, BlocksThatHoldNoNumberGetNaN) {
  std::vector<float> x(96, 1.0f);
  x[5] = std::numeric_limits<float>::infinity();
  x[40] = std::numeric_limits<float>::quiet_NaN();
  const Input input(Scalar(), formats::DType::kQ8_0, x, 1);
  EXPECT_TRUE(std::isnan(input.scale[0]));
  EXPECT_TRUE(std::isnan(input.scale[1]));
  EXPECT_EQ(input.q[0], 0);
  EXPECT_EQ(input.scale[2], 1.0f / 127.0f);
  EXPECT_EQ(input.q[64], 127);
}

TEST(ScalarRows, TinyBlocksAreZero) {
  const std::vector<float> x(32, 1e-37f);  // a scale below the smallest normal float
  const Input input(Scalar(), formats::DType::kQ8_0, x, 1);
  EXPECT_EQ(input.scale[0], 0.0f);
  EXPECT_EQ(input.q[0], 0);
}

TEST(ScalarRows, NormsAgreeWithDoubles) {
  const auto x = MakeInput(1000, InputKind::kBell, 3);
  std::vector<float> y(x.size());
  double squares = 0, sum = 0;
  for (const float v : x) squares += double{v} * v, sum += v;
  Scalar().rms_norm(x.data(), nullptr, 1000, 1e-5f, y.data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i] / std::sqrt(squares / 1000 + 1e-5), 1e-6);
  const double mean = sum / 1000;
  double variance = 0;
  for (const float v : x) variance += (v - mean) * (v - mean);
  Scalar().layer_norm(x.data(), nullptr, nullptr, 1000, 1e-5f, y.data());
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(y[i], (x[i] - mean) / std::sqrt(variance / 1000 + 1e-5), 2e-6);
}

TEST(ScalarRows, GatesAgreeWithDoubles) {
  std::vector<float> x;
  for (int i = -1600; i <= 1600; ++i) x.push_back(static_cast<float>(i) * 0.01f);
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> silu(x.size()), gelu_tanh(x.size()), gelu_erf(x.size()), softcap(x.size());
  Scalar().silu(x.data(), nullptr, n, silu.data());
  Scalar().gelu_tanh(x.data(), nullptr, n, gelu_tanh.data());
  Scalar().gelu_erf(x.data(), nullptr, n, gelu_erf.data());
  Scalar().softcap(x.data(), n, 5.0f, softcap.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    const double tolerance = 1e-6 * (1 + std::fabs(v));
    ASSERT_NEAR(silu[i], v / (1 + std::exp(-v)), tolerance);
    ASSERT_NEAR(gelu_tanh[i], 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))),
                tolerance);
    ASSERT_NEAR(gelu_erf[i], 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))), tolerance);
    ASSERT_NEAR(softcap[i], 5 * std::tanh(v / 5), tolerance);
  }
}

TEST(MeasureReachTest, IsAsDefined) {
  const platform::CpuFeatures cpu = platform::DetectCpuFeatures();
  for (const Kernels* kernels : AllKernels()) {
    if (kernels->measure_reach == nullptr || !kernels->supported(cpu)) continue;
    for (const InputKind input : kInputKinds) {
      const Input x(Scalar(), formats::DType::kQ4_K, MakeInput(5 * 256, input, 3), 1);
      std::vector<Reach> found(5);
      kernels->measure_reach(x.q.data(), x.columns, found.data());
      for (size_t k = 0; k < found.size(); ++k) {
        EXPECT_EQ(found[k].of_16, x.reach[k].of_16) << "block " << k << ", input " << static_cast<int>(input);
        EXPECT_EQ(found[k].of_32, x.reach[k].of_32) << "block " << k << ", input " << static_cast<int>(input);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
