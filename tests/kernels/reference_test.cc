// Products against arithmetic that is not ours: decoded rows times activations in double, and the dot
// products that come with the reference blocks. Tolerances are computed from the data.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/half.h"
#include "formats/decode.h"
#include "kernels/support.h"

namespace sluice::kernels {
namespace {

using formats::DType;

const Kernels& Scalar() { return *FindKernels("scalar"); }

// The activations as the product sees them: quantised, or as they are.
std::vector<double> SeenActivations(const Input& input) {
  std::vector<double> x(input.f32.begin(), input.f32.end());
  if (input.kind == ActivationKind::kF32) return x;
  const auto block = static_cast<size_t>(BlockLength(input.kind));
  for (size_t i = 0; i < x.size(); ++i) x[i] = double{input.scale[i / block]} * input.q[i];
  return x;
}

class ReferenceTest : public testing::TestWithParam<DType> {};

TEST_P(ReferenceTest, AgreesWithDecodedRowsInDouble) {
  const DType dtype = GetParam();
  const int64_t rows = 9, columns = 5 * 256, batch = 3;
  const auto weights = MakeWeights(dtype, rows, columns, WeightKind::kSane, 21);
  const Input input(Scalar(), dtype, MakeInput(columns * batch, InputKind::kBell, 22), batch);
  const auto y = Multiply(Scalar(), dtype, weights, rows, input.View());
  const auto seen = SeenActivations(input);
  std::vector<float> row(static_cast<size_t>(columns));
  for (int64_t r = 0; r < rows; ++r) {
    const size_t row_bytes = weights.size() / static_cast<size_t>(rows);
    formats::DecodeRow(dtype, weights.data() + static_cast<size_t>(r) * row_bytes, row);
    for (int64_t b = 0; b < batch; ++b) {
      double dot = 0, magnitude = 0;
      for (int64_t c = 0; c < columns; ++c) {
        const double product = row[static_cast<size_t>(c)] * seen[static_cast<size_t>(b * columns + c)];
        dot += product;
        magnitude += std::fabs(product);
      }
      // Rounding of decoded floats, of d · dx and of the chain: a few units of 2^−24 of what was added.
      // Formats with a minimum add and take away up to twice as much.
      ASSERT_NEAR(y[static_cast<size_t>(b * rows + r)], dot, 4e-6 * magnitude)
          << "row " << r << ", batch " << b;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ReferenceTest, testing::ValuesIn(WeightTypes()),
                         [](const auto& test) { return std::string(formats::Name(test.param)); });

const std::filesystem::path kFolder = std::filesystem::path(SLUICE_REFERENCE_DIR) / "oracle/blocks";

std::vector<std::byte> ReadFile(const std::string& name) {
  std::ifstream stream(kFolder / name, std::ios::binary);
  const std::vector<char> chars((std::istreambuf_iterator<char>(stream)), {});
  const auto* bytes = reinterpret_cast<const std::byte*>(chars.data());
  return {bytes, bytes + chars.size()};
}

// `dots` are the exact products of the stored rows with x.
void ExpectDots(const Kernels& kernels, DType dtype, const std::string& stored, const nlohmann::json& dots,
                const std::vector<float>& x) {
  const auto weights = ReadFile(stored);
  const auto rows = static_cast<int64_t>(dots.size());
  const Input input(kernels, dtype, x, 1);
  const auto y = Multiply(kernels, dtype, weights, rows, input.View());
  const auto seen = SeenActivations(input);
  std::vector<float> row(x.size());
  for (size_t r = 0; r < dots.size(); ++r) {
    formats::DecodeRow(dtype, weights.data() + r * (weights.size() / dots.size()), row);
    double tolerance = 0;
    for (size_t c = 0; c < x.size(); ++c) {
      tolerance += std::fabs(double{row[c]}) * (std::fabs(x[c] - seen[c]) + 4e-6 * std::fabs(x[c]));
    }
    if (!dots[r].is_number() || !std::isfinite(tolerance)) continue;  // rows with infinite or NaN scales
    EXPECT_NEAR(y[r], dots[r].get<double>(), tolerance) << kernels.name << " " << stored << " row " << r;
  }
}

TEST(ReferenceBlocks, DotProductsWithinTheErrorOfQuantisedActivations) {
  if (!std::filesystem::exists(kFolder)) GTEST_SKIP() << "no reference vectors at " << kFolder;
  std::ifstream stream(kFolder / "index.json");
  const auto index = nlohmann::json::parse(stream);
  const auto bytes = ReadFile("dotvec.f32");
  std::vector<float> x(bytes.size() / sizeof(float));
  std::memcpy(x.data(), bytes.data(), bytes.size());
  int files = 0;
  for (const auto& type : index["types"]) {
    const formats::DTypeTraits* traits = formats::FindDType(type["id"].get<uint32_t>());
    if (traits == nullptr) continue;  // a working format of that engine
    const std::pair<const char*, const char*> kinds[] = {
        {"quantised", "dot"}, {"quantised_imp", "dot_imp"}, {"random", "random_dot"}};
    for (const auto& [stored, dots] : kinds) {
      if (!type.contains(stored) || type[stored].is_null()) continue;
      for (const Kernels* table : AllKernels()) {
        if (Runs(*table)) ExpectDots(*table, traits->dtype, type[stored], type[dots], x);
      }
      ++files;
    }
  }
  EXPECT_GE(files, 54);
}

}  // namespace
}  // namespace sluice::kernels
