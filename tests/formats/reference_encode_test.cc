// What is encoded without importance is at least as near to its values as the reference's blocks are, row by
// row, in every format; and with importance, by that measure, in sum.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "formats/decode.h"
#include "formats/encode.h"
#include "reference_blocks.h"

namespace sluice::formats {
namespace {

class ReferenceEncode : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kReferenceBlocks))
      GTEST_SKIP() << "no reference vectors at " << kReferenceBlocks;
  }
};

double Error(std::span<const float> values, std::span<const float> decoded,
             std::span<const float> weights = {}) {
  double error = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = double{values[i]} - decoded[i];
    error += (weights.empty() ? 1.0 : double{weights[i]}) * difference * difference;
  }
  return error;
}

TEST_F(ReferenceEncode, NoWorseInAnyRow) {
  const auto index = ReadReferenceIndex();
  const std::vector<float> input = ReadReferenceFloats("input.f32"),
                           importance = ReadReferenceFloats("importance.f32");
  const auto columns = index["cols"].get<size_t>();
  int compared = 0;
  for (const auto& type : index["types"]) {
    const DTypeTraits* traits = FindDType(type["id"].get<uint32_t>());
    if (traits == nullptr || !CanEncode(traits->dtype)) continue;
    const auto encode = [&](std::span<const float> row, std::span<const float> weights) {
      std::vector<std::byte> blocks(RowBytes(traits->dtype, columns));
      std::vector<float> decoded(columns);
      EncodeRow(traits->dtype, row, weights, blocks.data());
      DecodeRow(traits->dtype, blocks.data(), decoded);
      return decoded;
    };
    // Some formats were made with importance only; that, too, is a bar to hold without.
    const bool plain = type.contains("dequantised") && !type["dequantised"].is_null();
    const std::vector<float> reference = ReadReferenceFloats(type[plain ? "dequantised" : "dequantised_imp"]);
    for (size_t begin = 0; begin < input.size(); begin += columns) {
      const std::span row = std::span(input).subspan(begin, columns);
      const double theirs = Error(row, std::span(reference).subspan(begin, columns));
      EXPECT_LE(Error(row, encode(row, {})), theirs * 1.000001) << traits->name << " row " << begin / columns;
    }
    if (type.contains("dequantised_imp") && !type["dequantised_imp"].is_null()) {
      const std::vector<float> weighted = ReadReferenceFloats(type["dequantised_imp"]);
      // Each row counts alike: errors are relative to the row's own size.
      double ours = 0, theirs = 0;
      for (size_t begin = 0; begin < input.size(); begin += columns) {
        const std::span row = std::span(input).subspan(begin, columns);
        const double size = Error(row, std::vector<float>(columns), importance);
        if (size == 0) continue;
        ours += Error(row, encode(row, importance), importance) / size;
        theirs += Error(row, std::span(weighted).subspan(begin, columns), importance) / size;
      }
      EXPECT_LE(ours, theirs) << traits->name;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 27);
}

}  // namespace
}  // namespace sluice::formats
