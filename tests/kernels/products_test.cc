// Every table against scalar, bit for bit: products with every weight format.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/half.h"
#include "formats/dtype.h"
#include "kernels/support.h"

namespace sluice::kernels {
namespace {

using formats::DType;

const Kernels& Scalar() { return *FindKernels("scalar"); }

// Lengths of a row: one block, odd numbers of blocks, and more than eight of them.
std::vector<int64_t> RowLengths(DType dtype) {
  const int64_t block = formats::Traits(dtype).block_length;
  if (block == 1) return {1, 15, 16, 17, 100, 256};
  if (block >= 256) return {256, 3 * 256, 5 * 256};
  return {block, 7 * block, 8 * block, 9 * block, 27 * block};
}

class ProductsTest : public testing::TestWithParam<std::tuple<TableParam, DType>> {
 protected:
  void SetUp() override { SLUICE_SKIP_UNLESS_RUNS(*kernels()); }
  const Kernels* kernels() const { return std::get<0>(GetParam()).kernels; }
  DType dtype() const { return std::get<1>(GetParam()); }

  void ExpectSameAsScalar(int64_t rows, int64_t columns, int64_t batch, WeightKind weight_kind,
                          InputKind input_kind) {
    const auto seed = static_cast<uint64_t>(rows * 1000003 + columns * 101 + batch);
    const auto weights = MakeWeights(dtype(), rows, columns, weight_kind, seed);
    const Input input(Scalar(), dtype(), MakeInput(columns * batch, input_kind, seed + 1), batch);
    const auto expected = Multiply(Scalar(), dtype(), weights, rows, input.View());
    const auto found = Multiply(*kernels(), dtype(), weights, rows, input.View());
    const int64_t at = FirstDifference(expected, found);
    ASSERT_EQ(at, -1) << rows << " rows, " << columns << " columns, batch " << batch << ", weights "
                      << static_cast<int>(weight_kind) << ", input " << static_cast<int>(input_kind)
                      << ": row " << at % rows << " of activation row " << at / rows << " is "
                      << found[static_cast<size_t>(at)] << ", not " << expected[static_cast<size_t>(at)];
  }
};

TEST_P(ProductsTest, EveryShape) {
  for (const int64_t columns : RowLengths(dtype())) {
    for (const int64_t rows : {1, 2, 3, 7, 8, 9, 17, 33}) {
      for (const int64_t batch : {1, 2, 3, 5}) {
        ASSERT_NO_FATAL_FAILURE(
            ExpectSameAsScalar(rows, columns, batch, WeightKind::kSane, InputKind::kBell));
      }
    }
  }
}

TEST_P(ProductsTest, LargeBatches) {
  const int64_t columns = RowLengths(dtype()).back();
  for (const int64_t rows : {1, 15, 16, 31, 32, 50, 64}) {
    for (const int64_t batch : {4, 6, 7, 8, 13, 16, 33, 65, 129}) {
      ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(rows, columns, batch, WeightKind::kSane, InputKind::kBell));
    }
  }
}

TEST_P(ProductsTest, LongRows) {
  const int64_t block = formats::Traits(dtype()).block_length;
  const int64_t columns = block == 1 ? 10007 : 20480 + 3 * block;
  for (const int64_t batch : {1, 17, 70}) {
    ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(18, columns, batch, WeightKind::kSane, InputKind::kBell));
  }
}

// Around the lengths at which kernels for batches cut a row, with rows and batches that leave panels and
// tiles incomplete.
TEST_P(ProductsTest, RowsAroundTheLengthsOfParts) {
  const int64_t block = formats::Traits(dtype()).block_length;
  const int64_t step = block == 1 ? 32 : block;
  for (const int64_t length : {2048, 4096, 6144}) {
    for (const int64_t columns : {length - step, length, length + step}) {
      for (const int64_t batch : {6, 9}) {
        ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(35, columns, batch, WeightKind::kSane, InputKind::kBell));
      }
    }
  }
}

// Kernels for batches of float weights cut rows, panels and batches at other numbers.
TEST_P(ProductsTest, LargeBatchesOfFloats) {
  if (formats::Traits(dtype()).block_length != 1) return;
  struct Shape {
    int64_t rows, columns, batch;
  };
  for (const Shape& shape :
       {Shape{64, 1, 40}, Shape{17, 15, 41}, Shape{80, 1023, 36}, Shape{33, 1024, 38}, Shape{100, 1041, 43},
        Shape{5, 4096, 37}, Shape{49, 4097, 36}, Shape{64, 4111, 230}, Shape{3, 5000, 1030}}) {
    ASSERT_NO_FATAL_FAILURE(
        ExpectSameAsScalar(shape.rows, shape.columns, shape.batch, WeightKind::kSane, InputKind::kBell));
  }
  for (const WeightKind weight_kind : kWeightKinds) {
    for (const InputKind input_kind : kInputKinds)
      ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(17, 1030, 40, weight_kind, input_kind));
  }
}

TEST_P(ProductsTest, EveryKindOfNumber) {
  const int64_t columns = RowLengths(dtype())[1];
  for (const WeightKind weight_kind : kWeightKinds) {
    for (const InputKind input_kind : kInputKinds) {
      for (const int64_t batch : {1, 3, 24}) {
        ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar(17, columns, batch, weight_kind, input_kind));
      }
    }
  }
}

// Integer sums as large as they can be.
TEST_P(ProductsTest, EveryActivationTheSame) {
  for (const WeightKind weight_kind : kWeightKinds) {
    for (const int64_t batch : {1, 3, 24}) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectSameAsScalar(33, RowLengths(dtype())[1], batch, weight_kind, InputKind::kOnes));
    }
  }
}

// Rows need not be packed: row_bytes may be larger than a row, and nothing between rows is read into a
// result.
TEST_P(ProductsTest, SpacedRows) {
  const int64_t rows = 11;
  const int64_t columns = RowLengths(dtype())[1];
  const size_t row_bytes = formats::RowBytes(dtype(), static_cast<uint64_t>(columns));
  const auto packed = MakeWeights(dtype(), rows, columns, WeightKind::kSane, 7);
  const size_t stride = row_bytes + 13;
  std::vector<std::byte> spaced(static_cast<size_t>(rows) * stride, std::byte{0xff});
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    std::copy_n(packed.begin() + static_cast<ptrdiff_t>(r * row_bytes), row_bytes,
                spaced.begin() + static_cast<ptrdiff_t>(r * stride));
  }
  for (const int64_t batch : {1, 20}) {
    const Input input(Scalar(), dtype(), MakeInput(columns * batch, InputKind::kBell, 8), batch);
    const auto expected = Multiply(Scalar(), dtype(), packed, rows, input.View());
    const auto found = Multiply(*kernels(), dtype(), spaced, rows, input.View());
    EXPECT_EQ(FirstDifference(expected, found), -1);
  }
}

// An element of the result depends on its row and its activation row, and on nothing else.
TEST_P(ProductsTest, BatchesAreSingleRows) {
  const int64_t rows = 35;
  const int64_t columns = RowLengths(dtype()).back();
  const int64_t batch = 37;
  const auto weights = MakeWeights(dtype(), rows, columns, WeightKind::kSane, 1);
  const auto x = MakeInput(columns * batch, InputKind::kBell, 2);
  const auto together =
      Multiply(*kernels(), dtype(), weights, rows, Input(*kernels(), dtype(), x, batch).View());
  for (int64_t b = 0; b < batch; ++b) {
    const std::vector<float> row(x.begin() + b * columns, x.begin() + (b + 1) * columns);
    const auto alone =
        Multiply(*kernels(), dtype(), weights, rows, Input(*kernels(), dtype(), row, 1).View());
    const std::vector<float> part(together.begin() + b * rows, together.begin() + (b + 1) * rows);
    ASSERT_EQ(FirstDifference(alone, part), -1) << "activation row " << b;
  }
}

// Activations whose runs reach just as far as 16 bits hold with the largest codes of Q4_K, Q5_K and Q6_K, one
// more and one less, in every row, in one row of several, and of either sign.
TEST_P(ProductsTest, RunsAtTheLimitOf16Bits) {
  constexpr int64_t kColumns = 512, kBatch = 21;
  for (const auto& [run, limit] : {std::pair{16, 1023}, {32, 1057}, {32, 2184}}) {
    for (const int reach : {limit - 1, limit, limit + 1}) {
      for (const float sign : {1.0f, -1.0f}) {
        for (const bool every_row : {true, false}) {
          std::vector<float> x(kColumns * kBatch, 0.0f);
          for (int64_t b = 0; b < kBatch; b += every_row ? 1 : 10) {
            for (int64_t i = 0; i < kColumns; ++i) {
              const int left = reach - static_cast<int>(i % run) * 127;
              x[static_cast<size_t>(b * kColumns + i)] = sign * static_cast<float>(std::clamp(left, 0, 127));
            }
          }
          const Input input(Scalar(), dtype(), x, kBatch);
          for (const WeightKind kind : {WeightKind::kHighest, WeightKind::kLowest, WeightKind::kSane}) {
            const auto weights = MakeWeights(dtype(), 40, kColumns, kind, 11);
            const auto expected = Multiply(Scalar(), dtype(), weights, 40, input.View());
            const auto found = Multiply(*kernels(), dtype(), weights, 40, input.View());
            ASSERT_EQ(FirstDifference(expected, found), -1)
                << "runs of " << run << " that reach " << reach << ", weights " << static_cast<int>(kind);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, ProductsTest,
                         testing::Combine(testing::ValuesIn(TestedTables()),
                                          testing::ValuesIn(WeightTypes())),
                         [](const auto& test) {
                           return TableName(std::get<0>(test.param)) + "_" +
                                  std::string(formats::Name(std::get<1>(test.param)));
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProductsTest);

TEST(KernelTables, ScalarIsAlwaysThereAndEveryTableIsWhole) {
  ASSERT_FALSE(AllKernels().empty());
  EXPECT_EQ(AllKernels()[0]->name, "scalar");
  EXPECT_EQ(BestKernels(platform::CpuFeatures{}).name, "scalar");
  EXPECT_EQ(FindKernels("no such table"), nullptr);
  for (const Kernels* table : AllKernels()) {
    EXPECT_EQ(FindKernels(table->name), table);
    for (const DType dtype : WeightTypes()) {
      EXPECT_NE(table->matmul[static_cast<size_t>(dtype)], nullptr)
          << table->name << " " << formats::Name(dtype);
    }
  }
}

TEST(KernelTables, ActivationBlocksDivideWeightBlocks) {
  for (const DType dtype : WeightTypes()) {
    const int64_t block = formats::Traits(dtype).block_length;
    EXPECT_EQ(block % BlockLength(ActivationKindFor(dtype)), 0) << formats::Name(dtype);
  }
}

}  // namespace
}  // namespace sluice::kernels
