#include "eval/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/hash.h"

namespace sluice::eval {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(PerplexityTest, AUniformModelHasTheVocabularysSize) {
  Perplexity perplexity;
  EXPECT_EQ(perplexity.value(), 1);
  const std::vector<float> logits(320, 1.5f);
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(perplexity.Add(logits, i), std::log(320.0), 1e-14);
  EXPECT_NEAR(perplexity.value(), 320, 1e-11);
  EXPECT_NEAR(perplexity.Confidence95().low, 320, 1e-9);
  EXPECT_EQ(perplexity.tokens(), 10);
}

TEST(PerplexityTest, IsTheGeometricMeanOfTheInverseProbabilities) {
  Perplexity perplexity;
  const auto log = [](double p) { return static_cast<float>(std::log(p)); };
  perplexity.Add(std::vector<float>{log(0.5), log(0.25), log(0.25)}, 0);
  perplexity.Add(std::vector<float>{log(0.5) + 7, log(0.25) + 7, log(0.25) + 7}, 1);
  EXPECT_NEAR(perplexity.value(), std::sqrt(8.0), 1e-6);
  EXPECT_NEAR(perplexity.nats().standard_error(), std::log(2.0) / 2, 1e-6);
  const Interval interval = perplexity.Confidence95();
  EXPECT_NEAR(interval.low * interval.high, 8, 1e-5);
  EXPECT_LT(interval.low, perplexity.value());
}

TEST(PerplexityTest, ATokenRuledOutIsInfinite) {
  Perplexity perplexity;
  perplexity.Add(std::vector<float>{0, 0}, 0);
  EXPECT_EQ(perplexity.Add(std::vector<float>{0, -kInf}, 1), kInf);
  EXPECT_EQ(perplexity.Add(std::vector<float>{0, std::nanf("")}, 1), kInf);
  EXPECT_EQ(perplexity.Add(std::vector<float>{-kInf, -kInf}, 1), kInf);
  EXPECT_EQ(perplexity.tokens(), 4);
  EXPECT_EQ(perplexity.ruled_out(), 3);
  EXPECT_EQ(perplexity.value(), kInf);
  EXPECT_EQ(perplexity.Confidence95().low, kInf);
  EXPECT_NEAR(perplexity.nats().mean(), std::log(2.0), 1e-15);
}

TEST(PerplexityTest, GoldenBits) {
  Perplexity perplexity;
  uint32_t random = 1;
  std::vector<float> logits(1003);
  for (int position = 0; position < 50; ++position) {
    for (float& logit : logits) {
      random = random * 1664525 + 1013904223;
      logit = static_cast<float>(random >> 8) * 0x1p-20f;
    }
    perplexity.Add(logits, position * 20);
  }
  const double values[] = {perplexity.value(), perplexity.Confidence95().low, perplexity.Confidence95().high};
  EXPECT_EQ(HashBytes(std::as_bytes(std::span(values))), 0xa1c17d9522fb5c4bull);
}

}  // namespace
}  // namespace sluice::eval
