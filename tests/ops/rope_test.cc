// Rope tables against those of an independent engine, for every scaling scheme.
#include "ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/hash.h"

namespace sluice::ops {
namespace {

TEST(RopeTest, PlainAnglesAreTheFormula) {
  const Rope rope({.dimensions = 8, .base = 10000.0});
  ASSERT_EQ(rope.pairs(), 4);
  float cos[4], sin[4];
  rope.Angles(1000, cos, sin);
  for (int i = 0; i < 4; ++i) {
    const double angle = 1000.0 * std::pow(10000.0, -2.0 * i / 8);
    EXPECT_NEAR(cos[i], std::cos(angle), 1e-6);
    EXPECT_NEAR(sin[i], std::sin(angle), 1e-6);
  }
}

TEST(RopeTest, TablesMatchTheReference) {
  const std::filesystem::path path = std::filesystem::path(SLUICE_REFERENCE_DIR) / "oracle/rope/rope_tables.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no reference vectors at " << path;
  std::ifstream in(path);
  const nlohmann::json tables = nlohmann::json::parse(in)["tables"];
  ASSERT_GT(tables.size(), 5u);
  for (const auto& t : tables) {
    const bool yarn = t["ext_factor"] == 1;
    RopeSpec spec{.dimensions = t["n_dims"],
                  .base = t["freq_base"],
                  .scaling = yarn ? RopeScaling::kYarn : RopeScaling::kLinear,
                  .factor = 1.0 / t["freq_scale"].get<double>(),
                  .original_context = t["n_ctx_orig"],
                  .attention_factor = t["attn_factor"]};
    for (const float divisor : t["freq_factors"]) spec.divisors.push_back(divisor);
    const Rope rope(spec);
    std::vector<float> cos(static_cast<size_t>(rope.pairs())), sin(cos.size());
    for (size_t p = 0; p < t["positions"].size(); ++p) {
      const int64_t position = t["positions"][p];
      rope.Angles(position, cos.data(), sin.data());
      // The reference works in float: its angle is off by an ulp or so of the position.
      const double tolerance = 1e-6 + 4e-7 * static_cast<double>(position);
      for (size_t i = 0; i < cos.size(); ++i) {
        EXPECT_NEAR(cos[i], t["cos"][p][i].get<double>(), tolerance) << t["name"] << " position " << position << " pair " << i;
        EXPECT_NEAR(sin[i], t["sin"][p][i].get<double>(), tolerance) << t["name"] << " position " << position << " pair " << i;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::ops
