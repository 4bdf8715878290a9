#include "quantize/feedback_encoder.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "formats/bell_shaped.h"
#include "formats/decode.h"
#include "formats/encode.h"
#include "formats/refine.h"

namespace sluice::quantize {
namespace {

using formats::BellShaped;
using formats::DType;

constexpr int64_t kColumns = 512, kWidest = 4096;

// Inputs whose columns are much alike: sums of a few directions, and a little of their own.
std::vector<float> CorrelatedInputs(int64_t count, int64_t columns, uint32_t seed) {
  constexpr int64_t kDirections = 24;
  const std::vector<float> directions = BellShaped(static_cast<size_t>(kDirections * columns), seed);
  const std::vector<float> shares = BellShaped(static_cast<size_t>(count * kDirections), seed + 1);
  std::vector<float> inputs = BellShaped(static_cast<size_t>(count * columns), seed + 2);
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t c = 0; c < columns; ++c) {
      float& x = inputs[static_cast<size_t>(row * columns + c)];
      x *= 0.3f;
      for (int64_t k = 0; k < kDirections; ++k)
        x += shares[static_cast<size_t>(row * kDirections + k)] *
             directions[static_cast<size_t>(k * columns + c)];
    }
  }
  return inputs;
}

class FeedbackEncoderTest : public testing::Test {
 protected:
  struct Machine {
    explicit Machine(int threads, uint64_t budget = uint64_t{1} << 30) : ledger(budget), pool(threads) {}
    memory::Ledger ledger;
    parallel::ThreadPool pool;
    runtime::Context context{
        .kernels = &kernels::BestKernels(platform::DetectCpuFeatures()), .pool = &pool, .ledger = &ledger};
  };

  static Hessian Gathered(const Machine& machine, std::span<const float> inputs, int64_t columns = kColumns,
                          int64_t widest = kWidest) {
    auto hessian = Hessian::Create(machine.context, columns, widest);
    EXPECT_TRUE(hessian);
    hessian->Add(machine.context, inputs.data(), static_cast<int64_t>(inputs.size()) / columns);
    const Status finished = hessian->Finish(0.01);
    EXPECT_TRUE(finished) << finished.error().message;
    return *std::move(hessian);
  }

  // What a matrix of these inputs is encoded with, and what tells how good that was.
  struct Inputs {
    Inputs(const Machine& m, std::span<const float> inputs, int64_t columns = kColumns,
           int64_t widest = kWidest)
        : machine(m),
          hessian(Gathered(m, inputs, columns, widest)),
          factor(*FactorOf(m.context, Gathered(m, inputs, columns, widest))) {}

    std::vector<std::byte> Encode(DType dtype, std::span<const float> weights) const {
      const auto columns = static_cast<uint64_t>(hessian.columns());
      const auto encoder = FeedbackEncoder::Create(machine.context, factor, dtype);
      EXPECT_TRUE(encoder);
      std::vector<std::byte> blocks(weights.size() / columns * formats::RowBytes(dtype, columns));
      const double error = encoder->Encode(weights, blocks);
      EXPECT_NEAR(error, OutputError(hessian, dtype, weights, blocks), 0.01 * error) << formats::Name(dtype);
      return blocks;
    }
    // The output's error with these blocks, and with the nearest ones.
    double Error(DType dtype, std::span<const float> weights) const {
      return OutputError(hessian, dtype, weights, Encode(dtype, weights));
    }
    double PlainError(DType dtype, std::span<const float> weights) const {
      return OutputError(hessian, dtype, weights, Plain(hessian, dtype, weights));
    }

    const Machine& machine;
    Hessian hessian;
    BlockDiagonal factor;
  };

  // Σ over rows of eᵀ H e, by its definition.
  static double OutputError(const Hessian& hessian, DType dtype, std::span<const float> weights,
                            std::span<const std::byte> blocks) {
    const int64_t columns = hessian.columns();
    const size_t row_bytes = formats::RowBytes(dtype, static_cast<uint64_t>(columns));
    std::vector<float> decoded(static_cast<size_t>(columns));
    double sum = 0;
    for (size_t row = 0; row < weights.size() / static_cast<size_t>(columns); ++row) {
      formats::DecodeRow(dtype, blocks.data() + row * row_bytes, decoded);
      const std::span<const float> w = weights.subspan(row * decoded.size(), decoded.size());
      const BlockDiagonal& h = hessian.matrix();
      for (int block = 0; block < h.blocks(); ++block) {
        for (int64_t i = 0; i < h.width(block); ++i) {
          const auto error = [&](int64_t c) {
            const auto at = static_cast<size_t>(h.first(block) + c);
            return double{w[at]} - double{decoded[at]};
          };
          double image = 0;
          for (int64_t j = 0; j < h.width(block); ++j)
            image += double{h.data(block)[i * h.width(block) + j]} * error(j);
          sum += error(i) * image;
        }
      }
    }
    return sum;
  }

  static std::vector<std::byte> Plain(const Hessian& hessian, DType dtype, std::span<const float> weights) {
    const auto columns = static_cast<size_t>(hessian.columns());
    std::vector<float> importance;
    for (int64_t c = 0; c < hessian.columns(); ++c) importance.push_back(hessian.matrix().at(c));
    const size_t row_bytes = formats::RowBytes(dtype, columns);
    std::vector<std::byte> blocks(weights.size() / columns * row_bytes);
    for (size_t row = 0; row < weights.size() / columns; ++row)
      formats::EncodeRow(dtype, weights.subspan(row * columns, columns), importance,
                         blocks.data() + row * row_bytes);
    return blocks;
  }
};

TEST_F(FeedbackEncoderTest, OutputErrorsAreMuchSmallerThanThoseOfTheNearestBlocks) {
  const Machine machine(2);
  const Inputs inputs(machine, CorrelatedInputs(512, kColumns, 1));
  const std::vector<float> weights = BellShaped(4 * kColumns, 7);
  for (const formats::DTypeTraits& traits : formats::AllDTypes()) {
    const DType dtype = traits.dtype;
    if (!formats::IsQuantised(dtype)) continue;
    const double share = formats::CanRefine(dtype) ? 0.5 : 0.8;
    EXPECT_LT(inputs.Error(dtype, weights), share * inputs.PlainError(dtype, weights)) << traits.name;
  }
}

// Also where feedback has little to work with, each row by itself.
TEST_F(FeedbackEncoderTest, NoRowIsWorseThanThePlainEncoderMakesIt) {
  const Machine machine(2);
  const std::vector<float> alone = BellShaped(64 * kColumns, 3);
  std::vector<float> one_column(64 * kColumns);
  for (size_t i = 0; i < one_column.size(); i += kColumns) one_column[i + 17] = alone[i];
  const std::vector<float> weights = BellShaped(6 * kColumns, 7);
  for (const std::vector<float>& values : {alone, one_column, CorrelatedInputs(512, kColumns, 1)}) {
    const Inputs inputs(machine, values);
    const std::vector<float> importance = OwnWeights(inputs.factor);
    for (const formats::DTypeTraits& traits : formats::AllDTypes()) {
      const DType dtype = traits.dtype;
      if (!formats::IsQuantised(dtype)) continue;
      const std::vector<std::byte> blocks = inputs.Encode(dtype, weights);
      const size_t row_bytes = formats::RowBytes(dtype, kColumns);
      std::vector<std::byte> plain(row_bytes);
      for (size_t row = 0; row < weights.size() / kColumns; ++row) {
        const std::span<const float> w = std::span(weights).subspan(row * kColumns, kColumns);
        formats::EncodeRow(dtype, w, importance, plain.data());
        const auto encoded = std::span(blocks).subspan(row * row_bytes, row_bytes);
        EXPECT_LE(OutputError(inputs.hessian, dtype, w, encoded),
                  1.00001 * OutputError(inputs.hessian, dtype, w, plain))
            << traits.name << " row " << row;
      }
    }
  }
}

TEST_F(FeedbackEncoderTest, ThreadsChangeNothing) {
  const Machine one(1), three(3);
  const std::vector<float> values = CorrelatedInputs(300, kColumns, 1),
                           weights = BellShaped(10 * kColumns, 7);
  const Inputs by_one(one, values), by_three(three, values);
  for (const DType dtype : {DType::kQ4_K, DType::kIQ2_XS, DType::kQ4_0})
    EXPECT_EQ(by_one.Encode(dtype, weights), by_three.Encode(dtype, weights)) << formats::Name(dtype);
}

// Rows that are too long for one Hessian have it in stretches, which still help.
TEST_F(FeedbackEncoderTest, LongRowsHaveTheirCorrelationsInStretches) {
  const Machine machine(2);
  constexpr int64_t kLong = 1280;
  const Inputs inputs(machine, CorrelatedInputs(512, kLong, 1), kLong, 512);
  EXPECT_EQ(inputs.factor.blocks(), 3);
  EXPECT_EQ(inputs.factor.width(2), 256);
  const std::vector<float> weights = BellShaped(4 * kLong, 7);
  EXPECT_LT(inputs.Error(DType::kQ3_K, weights), 0.5 * inputs.PlainError(DType::kQ3_K, weights));
}

TEST_F(FeedbackEncoderTest, WithoutInputsAllColumnsCountAlike) {
  const Machine machine(2);
  const Inputs inputs(machine, std::vector<float>(64 * kColumns));
  const std::vector<float> weights = BellShaped(4 * kColumns, 7);
  EXPECT_EQ(inputs.hessian.matrix().at(3), 1.0f);
  EXPECT_LE(inputs.Error(DType::kQ4_K, weights), 1.001 * inputs.PlainError(DType::kQ4_K, weights));
}

// Columns that never carry anything.
TEST_F(FeedbackEncoderTest, DeadColumns) {
  const Machine machine(2);
  std::vector<float> values = CorrelatedInputs(512, kColumns, 1);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % kColumns < 300) values[i] = 0;
  }
  const Inputs inputs(machine, values);
  const std::vector<float> weights = BellShaped(4 * kColumns, 7);
  for (const DType dtype : {DType::kQ2_K, DType::kIQ3_S, DType::kQ8_0}) {
    std::vector<float> decoded(kColumns);
    formats::DecodeRow(dtype, inputs.Encode(dtype, weights).data(), decoded);
    EXPECT_THAT(decoded, testing::Each(testing::Truly([](float x) { return std::fabs(x) < 20; })));
  }
}

TEST_F(FeedbackEncoderTest, InputsThatAreNoNumbersAreRefused) {
  const Machine machine(2);
  std::vector<float> inputs(4 * kColumns, 1.0f);
  inputs[700] = std::numeric_limits<float>::quiet_NaN();
  auto hessian = Hessian::Create(machine.context, kColumns, kWidest);
  ASSERT_TRUE(hessian);
  hessian->Add(machine.context, inputs.data(), 4);
  const Status finished = hessian->Finish(0.01);
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(finished.error().message, testing::HasSubstr("NaN or infinite"));
}

TEST_F(FeedbackEncoderTest, MemoryIsTheLedgers) {
  const uint64_t bytes =
      BlockDiagonal::Bytes(kColumns, kWidest) + Hessian::WorkingBytes(kColumns, kWidest, 1);
  const Machine machine(1, bytes + 100000);
  Hessian hessian = Gathered(machine, CorrelatedInputs(16, kColumns, 1));
  EXPECT_EQ(machine.ledger.Snapshot().total_bytes(), bytes);
  const auto another = Hessian::Create(machine.context, kColumns, kWidest);
  ASSERT_FALSE(another) << "there is no room for two";
  EXPECT_EQ(another.error().code, ErrorCode::kDoesNotFit);
  // What adding took is free again when the factor is made.
  const auto factor = FactorOf(machine.context, std::move(hessian));
  ASSERT_TRUE(factor);
  EXPECT_EQ(machine.ledger.Snapshot().total_bytes(), BlockDiagonal::Bytes(kColumns, kWidest));
  const auto encoder = FeedbackEncoder::Create(machine.context, *factor, DType::kQ4_K);
  ASSERT_TRUE(encoder);
  EXPECT_EQ(machine.ledger.Snapshot().total_bytes(),
            BlockDiagonal::Bytes(kColumns, kWidest) + FeedbackEncoder::Bytes(kColumns, DType::kQ4_K));
}

}  // namespace
}  // namespace sluice::quantize
