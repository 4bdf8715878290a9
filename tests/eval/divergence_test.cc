#include "eval/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/hash.h"

namespace sluice::eval {
namespace {

using Row = std::vector<float>;

constexpr float kInf = std::numeric_limits<float>::infinity();

// Logits between 0 and 16.
Row RandomRow(size_t size, uint32_t seed) {
  Row row(size);
  for (float& logit : row) {
    seed = seed * 1664525 + 1013904223;
    logit = static_cast<float>(seed >> 8) * 0x1p-20f;
  }
  return row;
}

// By its definition, in long double.
double Reference(const Row& base, const Row& logits) {
  long double base_sum = 0, sum = 0, kl = 0;
  for (const float x : base) base_sum += std::exp(static_cast<long double>(x));
  for (const float x : logits) sum += std::exp(static_cast<long double>(x));
  for (size_t i = 0; i < base.size(); ++i) {
    const long double p = std::exp(static_cast<long double>(base[i])) / base_sum;
    const long double q = std::exp(static_cast<long double>(logits[i])) / sum;
    kl += p * (std::log(p) - std::log(q));
  }
  return static_cast<double>(kl);
}

TEST(DivergenceTest, IsTheDefinitionsValue) {
  for (const size_t size : {1u, 2u, 15u, 16u, 17u, 33u, 1003u}) {
    Divergence divergence;
    const Row base = RandomRow(size, 1), logits = RandomRow(size, 2);
    EXPECT_NEAR(divergence.Add(base, logits, 0), Reference(base, logits), 1e-12) << size;
  }
}

TEST(DivergenceTest, AConstantChangesNothing) {
  Row base = RandomRow(100, 1), logits = RandomRow(100, 2);
  Divergence before, after;
  before.Add(base, logits, 3);
  for (float& logit : base) logit -= 16;  // exact: all are multiples of 2^−20 below 16
  for (float& logit : logits) logit -= 8;
  after.Add(base, logits, 3);
  EXPECT_EQ(before.kl().mean(), after.kl().mean());
  EXPECT_EQ(before.PerplexityRatio(), after.PerplexityRatio());
}

TEST(DivergenceTest, EqualModelsDoNotDiverge) {
  Divergence divergence;
  for (uint32_t i = 0; i < 10; ++i) divergence.Add(RandomRow(320, i), RandomRow(320, i), 7);
  EXPECT_LT(divergence.max(), 1e-14);
  EXPECT_EQ(divergence.same_top().right, 10);
  EXPECT_EQ(divergence.PerplexityRatio(), 1);
  EXPECT_EQ(divergence.perplexity().value(), divergence.base_perplexity().value());
}

TEST(DivergenceTest, CountsWhatIsLikeliestAndHowLikelyTheNextTokenWas) {
  const auto log = [](double p) { return static_cast<float>(std::log(p)); };
  Divergence divergence;
  divergence.Add(Row{log(0.5), log(0.25), log(0.25)}, Row{log(0.25), log(0.5), log(0.25)}, 0);
  divergence.Add(Row{log(0.5), log(0.25), log(0.25)}, Row{log(0.5), log(0.25), log(0.25)}, 2);
  // Among equals the first is the likeliest.
  divergence.Add(Row{1, 1, 0}, Row{1, 0, 0}, 0);
  divergence.Add(Row{0, 1, 1}, Row{0, 0, 1}, 0);
  EXPECT_EQ(divergence.same_top().right, 2);
  EXPECT_EQ(divergence.same_top().total, 4);

  Divergence first;
  first.Add(Row{log(0.5), log(0.25), log(0.25)}, Row{log(0.25), log(0.5), log(0.25)}, 0);
  EXPECT_NEAR(first.kl().mean(), 0.25 * std::log(2.0), 1e-7);
  EXPECT_NEAR(first.base_perplexity().value(), 2, 1e-6);
  EXPECT_NEAR(first.perplexity().value(), 4, 1e-6);
  EXPECT_NEAR(first.PerplexityRatio(), 2, 1e-6);
}

TEST(DivergenceTest, TheRatiosIntervalIsThatOfTheDifferences) {
  // The next token is hard or easy for both alike, and always a little harder for the model.
  Divergence divergence;
  for (int i = 0; i < 100; ++i) {
    const float easy = i % 2 == 0 ? 8.0f : -8.0f;
    divergence.Add(Row{easy, 0}, Row{easy - 0.01f, 0}, 0);
  }
  const Interval ratio = divergence.PerplexityRatioConfidence95();
  EXPECT_LE(ratio.low, divergence.PerplexityRatio());
  EXPECT_GE(ratio.high, divergence.PerplexityRatio());
  EXPECT_LT(ratio.high - ratio.low, 0.01);
  const Interval own = divergence.perplexity().Confidence95();
  EXPECT_GT(own.high / own.low, 3);
}

TEST(DivergenceTest, QuantilesAreValuesThatWereAdded) {
  Divergence divergence;
  EXPECT_EQ(divergence.Quantile(0.5), 0);
  std::vector<double> values;
  for (const float x : {3.0f, 1.0f, 4.0f, 2.0f, 0.0f})  // the farther, the larger
    values.push_back(divergence.Add(Row{0, 0}, Row{x, 0}, 0));
  std::sort(values.begin(), values.end());
  EXPECT_EQ(divergence.Quantile(0), values[0]);
  EXPECT_EQ(divergence.Quantile(0.5), values[2]);
  EXPECT_EQ(divergence.Quantile(0.8), values[3]);
  EXPECT_EQ(divergence.Quantile(0.81), values[4]);
  EXPECT_EQ(divergence.max(), values[4]);
}

TEST(DivergenceTest, WhatTheModelRulesOutIsInfinite) {
  Divergence divergence;
  divergence.Add(Row{1, 0}, Row{1, 0}, 0);
  EXPECT_EQ(divergence.Add(Row{1, 0}, Row{1, -kInf}, 0), kInf);
  EXPECT_EQ(divergence.Add(Row{1, 0}, Row{1, std::nanf("")}, 0), kInf);
  EXPECT_EQ(divergence.Add(Row{-kInf, -kInf}, Row{1, 0}, 0), kInf);
  EXPECT_EQ(divergence.Add(Row{1, 0}, Row{-kInf, std::nanf("")}, 0), kInf);
  // What only the base rules out is no harm.
  EXPECT_NEAR(divergence.Add(Row{1, -kInf}, Row{1, 1}, 0), std::log(2.0), 1e-15);
  EXPECT_NEAR(divergence.Add(Row{1, std::nanf("")}, Row{1, 1}, 0), std::log(2.0), 1e-15);
  EXPECT_EQ(divergence.positions(), 7);
  EXPECT_EQ(divergence.infinite(), 4);
  EXPECT_EQ(divergence.max(), kInf);
  EXPECT_LT(divergence.kl().mean(), 1);
  // +infinity counts as the largest float.
  const float most = std::numeric_limits<float>::max();
  EXPECT_LT(divergence.Add(Row{kInf, 0}, Row{most, 0}, 0), 1e-14);
}

TEST(DivergenceTest, GoldenBits) {
  Divergence divergence;
  for (uint32_t i = 0; i < 20; ++i) divergence.Add(RandomRow(1003, i), RandomRow(1003, i + 100), 5);
  const double values[] = {divergence.kl().mean(), divergence.Quantile(0.5), divergence.max(),
                           divergence.PerplexityRatio()};
  EXPECT_EQ(HashBytes(std::as_bytes(std::span(values))), 0x47502006bcd2526full);
}

}  // namespace
}  // namespace sluice::eval
