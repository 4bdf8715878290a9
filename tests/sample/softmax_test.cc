#include "sample/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/hash.h"
#include "sample/logits.h"
#include "sample/random.h"

namespace sluice::sample {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(RandomTest, IsXoshiro256StarStar) {
  // Source: computed by hand from the published definition, state {1, 2, 3, 4}.
  Random random(Random::State{1, 2, 3, 4});
  EXPECT_EQ(random.Next(), 11520u);
  EXPECT_EQ(random.Next(), 0u);
  EXPECT_EQ(random.Next(), 1509978240u);
  EXPECT_EQ(random.Next(), 1215971899390074240u);
}

TEST(RandomTest, SeedsAreFilledBySplitMix64) {
  // Source: the first outputs of SplitMix64 for seed 1234567, as published with it.
  const Random random(1234567);
  EXPECT_EQ(random.state()[0], 6457827717110365317u);
  EXPECT_EQ(random.state()[1], 3203168211198807973u);
}

TEST(RandomTest, UniformIsUniform) {
  Random random(7);
  int counts[64] = {};
  constexpr int kDraws = 64 * 1000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.Uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ++counts[static_cast<int>(u * 64)];
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 103.4);  // 63 degrees of freedom, one in a thousand
}

TEST(SoftmaxTest, ExpNonPositiveIsClose) {
  for (double x = 0; x > -700; x -= 0.00937) {
    const long double truth = std::exp(static_cast<long double>(x));
    ASSERT_LE(std::fabs((ExpNonPositive(x) - truth) / truth), 2e-14L) << x;
  }
  EXPECT_EQ(ExpNonPositive(0), 1);
  EXPECT_EQ(ExpNonPositive(-701), 0);
  EXPECT_EQ(ExpNonPositive(-1e308), 0);
  EXPECT_EQ(ExpNonPositive(-std::numeric_limits<double>::infinity()), 0);
  EXPECT_EQ(ExpNonPositive(std::nan("")), 0);
}

TEST(SoftmaxTest, LogProbabilitiesMatchTheDefinition) {
  for (const size_t vocab_size : {1u, 2u, 15u, 16u, 17u, 33u, 1000u}) {
    const std::vector<float> logits = RandomLogits(vocab_size, vocab_size);
    long double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
    const LogSoftmax softmax(logits);
    for (const float logit : logits)
      EXPECT_NEAR(softmax.LogProbability(logit), static_cast<double>(logit - std::log(sum)), 1e-12);
  }
}

TEST(SoftmaxTest, OddLogitsHaveAMeaning) {
  const LogSoftmax nan(std::vector<float>{kNaN, 1, 1});
  EXPECT_NEAR(nan.LogProbability(1), -std::log(2.0), 1e-15);
  EXPECT_EQ(nan.LogProbability(kNaN), -kInf);
  EXPECT_EQ(nan.LogProbability(-kInf), -kInf);

  const LogSoftmax infinite(std::vector<float>{kInf, 3, kInf});
  EXPECT_NEAR(infinite.LogProbability(kInf), -std::log(2.0), 1e-15);
  EXPECT_LT(infinite.LogProbability(3), -1e38);

  const std::vector<float> impossible(20, -kInf);
  EXPECT_EQ(MaxLogit(impossible), -kInf);
  EXPECT_EQ(SumExp(impossible, -kInf), 0);
  EXPECT_EQ(LogSoftmax(impossible).LogProbability(-kInf), -kInf);
  EXPECT_EQ(MaxLogit({}), -kInf);
}

TEST(SoftmaxTest, TopLogprobsAreTheLargestInOrder) {
  std::vector<float> logits = RandomLogits(5000, 3);
  for (size_t i = 0; i < logits.size(); i += 7) logits[i] = std::round(logits[i]);  // ties
  logits[17] = kNaN;
  std::vector<int32_t> order;
  for (int32_t id = 0; id < 5000; ++id)
    if (id != 17) order.push_back(id);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[size_t(a)] > logits[size_t(b)]; });
  const LogSoftmax softmax(logits);
  for (const size_t n : {0u, 1u, 5u, 100u, 4999u, 6000u}) {
    std::vector<TokenLogprob> top(n);
    const size_t found = TopLogprobs(logits, top);
    ASSERT_EQ(found, std::min<size_t>(n, 4999));
    for (size_t i = 0; i < found; ++i) {
      EXPECT_EQ(top[i].id, order[i]);
      EXPECT_EQ(top[i].logprob, softmax.LogProbability(logits[size_t(order[i])]));
    }
  }
}

TEST(SoftmaxTest, TiesAtInfinityGoToTheLowerId) {
  TokenLogprob top[2];
  ASSERT_EQ(TopLogprobs(std::vector<float>{0, kInf, std::numeric_limits<float>::max(), kInf}, top), 2u);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(top[1].id, 2);
}

TEST(SoftmaxTest, GoldenBits) {
  uint64_t hash = kHashSeed;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> logits = RandomLogits(3001, seed);
    const LogSoftmax softmax(logits);
    for (const float logit : logits) {
      const double logprob = softmax.LogProbability(logit);
      hash = HashBytes(std::as_bytes(std::span(&logprob, 1)), hash);
    }
  }
  EXPECT_EQ(hash, 0x6ef2244737a62452ull);
}

}  // namespace
}  // namespace sluice::sample
