#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "sample/count_allocations.h"
#include "sample/logits.h"

namespace sluice::sample {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// No filter at all.
SamplerOptions Plain() {
  SamplerOptions options;
  options.temperature = 1;
  options.top_p = 1;
  options.min_p = 0;
  options.seed = 42;
  return options;
}

Sampler Make(const SamplerOptions& options, size_t vocab_size, int64_t context_length = 1000) {
  const auto piece = [](int32_t token, std::string* out) { *out += token % 10 == 0 ? "\n" : "x"; };
  Result<Sampler> sampler =
      Sampler::Create(options, {static_cast<int32_t>(vocab_size), context_length, piece});
  EXPECT_TRUE(sampler) << sampler.error().message;
  return *std::move(sampler);
}

// The chain by its definition, in long double, with full sorts.
std::map<int32_t, double> Reference(const std::vector<float>& logits, const SamplerOptions& options) {
  struct Entry {
    int32_t id;
    long double logit, p;
  };
  std::vector<Entry> list;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] > -kInf) list.push_back({static_cast<int32_t>(id), logits[id], 0});
  }
  const auto softmax = [&](long double temperature) {
    std::sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
    long double sum = 0;
    for (Entry& e : list) sum += e.p = std::exp((e.logit - list[0].logit) / temperature);
    for (Entry& e : list) e.p /= sum;
  };
  const auto keep_mass = [&](double mass) {
    long double sum = 0;
    size_t kept = 0;
    do sum += list[kept++].p;
    while (sum < mass && kept < list.size());
    list.resize(kept);
  };
  softmax(1);
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < list.size())
    list.resize(static_cast<size_t>(options.top_k));
  softmax(1);
  if (options.typical_p < 1) {
    long double entropy = 0;
    for (const Entry& e : list) entropy -= e.p * std::log(e.p);
    std::stable_sort(list.begin(), list.end(), [&](const Entry& a, const Entry& b) {
      return std::fabs(-std::log(a.p) - entropy) < std::fabs(-std::log(b.p) - entropy);
    });
    keep_mass(options.typical_p);
    softmax(1);
  }
  if (options.top_p < 1) keep_mass(options.top_p);
  softmax(1);
  std::erase_if(list, [&](const Entry& e) { return e.p < options.min_p * list[0].p; });
  softmax(options.temperature);
  std::map<int32_t, double> result;
  for (const Entry& e : list) result[e.id] = static_cast<double>(e.p);
  return result;
}

std::map<int32_t, double> Probabilities(const Sampler& sampler) {
  double sum = 0;
  for (const Candidate& c : sampler.candidates()) sum += c.weight;
  std::map<int32_t, double> result;
  for (const Candidate& c : sampler.candidates()) result[c.id] = c.weight / sum;
  return result;
}

void ExpectSame(const std::map<int32_t, double>& found, const std::map<int32_t, double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [id, p] : expected) {
    ASSERT_TRUE(found.contains(id)) << id;
    EXPECT_NEAR(found.at(id), p, 1e-9 + p * 1e-9);
  }
}

TEST(SamplerTest, EveryCombinationOfFiltersMatchesItsDefinition) {
  size_t seen_cut = 0;
  for (const size_t vocab_size : {1u, 2u, 50u, 1000u}) {
    for (const int64_t top_k : {0, 1, 5, 400}) {
      for (const double typical_p : {1.0, 0.3, 0.9}) {
        for (const double top_p : {1.0, 0.0, 0.5, 0.95, 0.999999}) {
          for (const double min_p : {0.0, 0.05, 1.0}) {
            for (const double temperature : {0.7, 3.0}) {
              SamplerOptions options = Plain();
              options.top_k = top_k;
              options.typical_p = typical_p;
              options.top_p = top_p;
              options.min_p = min_p;
              options.temperature = temperature;
              SCOPED_TRACE(
                  fmt::format("vocabulary {}, top_k {}, typical_p {}, top_p {}, min_p {}, temperature {}",
                              vocab_size, top_k, typical_p, top_p, min_p, temperature));
              const std::vector<float> logits =
                  RandomLogits(vocab_size, vocab_size + static_cast<size_t>(top_k));
              Sampler sampler = Make(options, vocab_size);
              const std::optional<int32_t> token = sampler.Sample(logits);
              const auto expected = Reference(logits, options);
              ExpectSame(Probabilities(sampler), expected);
              ASSERT_TRUE(token);
              EXPECT_TRUE(expected.contains(*token));
              seen_cut += expected.size() < vocab_size ? 1 : 0;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(seen_cut, 1000u);
}

TEST(SamplerTest, ALargeVocabularyWithTheDefaults) {
  const size_t vocab_size = 151'936;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    SamplerOptions options;
    options.seed = 1;
    const std::vector<float> logits = RandomLogits(vocab_size, seed, seed == 2 ? 0.1 : 6);
    Sampler sampler = Make(options, vocab_size);
    ASSERT_TRUE(sampler.Sample(logits));
    ExpectSame(Probabilities(sampler), Reference(logits, options));
  }
}

TEST(SamplerTest, DrawsFollowTheProbabilities) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    SamplerOptions options = Plain();
    options.seed = seed;
    options.temperature = 1.3;
    options.top_k = 12;
    const std::vector<float> logits = RandomLogits(40, 9);
    Sampler sampler = Make(options, logits.size());
    std::map<int32_t, int> counts;
    constexpr int kDraws = 100'000;
    for (int i = 0; i < kDraws; ++i) ++counts[*sampler.Sample(logits)];
    double chi_square = 0;
    for (const auto& [id, p] : Reference(logits, options))
      chi_square += std::pow(counts[id] - p * kDraws, 2) / (p * kDraws);
    EXPECT_EQ(counts.size(), 12u);
    EXPECT_LT(chi_square, 31.3);  // 11 degrees of freedom, one in a thousand
  }
}

TEST(SamplerTest, TemperatureZeroTakesTheLikeliestWhateverTheFilters) {
  SamplerOptions options;
  options.temperature = 0;
  options.typical_p = 0.01;
  options.top_k = 3;
  Sampler sampler = Make(options, 6);                                  // no seed needed
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 5, 2, 5, 0, 4}), 1);  // the lower id of two
  EXPECT_EQ(sampler.Sample(std::vector<float>{kNaN, -kInf, -5, -4, kNaN, -kInf}), 3);
  EXPECT_EQ(sampler.Sample(std::vector<float>{0, 1, kInf, 3, kInf, 5}), 2);
  ASSERT_EQ(sampler.candidates().size(), 1u);
  EXPECT_EQ(sampler.candidates()[0].id, 2);
}

TEST(SamplerTest, ChanceNeedsASeed) {
  SamplerOptions options;
  const Result<Sampler> sampler = Sampler::Create(options, {10, 100, {}});
  ASSERT_FALSE(sampler);
  EXPECT_NE(sampler.error().message.find("seed"), std::string::npos);
}

TEST(SamplerTest, ExtremeTemperaturesAreTaken) {
  const std::vector<float> logits = {1, 2, 3, 2.5f};
  SamplerOptions options = Plain();
  for (const double cold : {1e-300, 1e-6}) {
    options.temperature = cold;
    Sampler sampler = Make(options, logits.size());
    for (int i = 0; i < 100; ++i) EXPECT_EQ(sampler.Sample(logits), 2);
  }
  options.temperature = 1e308;
  Sampler sampler = Make(options, logits.size());
  ASSERT_TRUE(sampler.Sample(logits));
  for (const auto& [id, p] : Probabilities(sampler)) EXPECT_NEAR(p, 0.25, 1e-5);
}

TEST(SamplerTest, WhatCannotComeNeverComes) {
  const std::vector<float> logits = {kNaN, 0, -kInf, 0, kNaN, -kInf};
  for (const double typical_p : {1.0, 0.9}) {
    for (const int64_t top_k : {0, 4}) {
      for (const double top_p : {1.0, 0.99}) {
        SamplerOptions options = Plain();
        options.typical_p = typical_p;
        options.top_k = top_k;
        options.top_p = top_p;
        Sampler sampler = Make(options, logits.size());
        int counts[6] = {};
        for (int i = 0; i < 200; ++i) ++counts[*sampler.Sample(logits)];
        EXPECT_EQ(counts[1] + counts[3], 200);
        EXPECT_GT(counts[1], 50);
        EXPECT_GT(counts[3], 50);
      }
    }
  }
}

TEST(SamplerTest, NothingCanComeIsAnAnswerToo) {
  for (const double temperature : {0.0, 1.0}) {
    SamplerOptions options;
    options.seed = 1;
    options.temperature = temperature;
    Sampler sampler = Make(options, 3);
    EXPECT_FALSE(sampler.Sample(std::vector<float>(3, -kInf)));
    EXPECT_FALSE(sampler.Sample(std::vector<float>(3, kNaN)));
    EXPECT_TRUE(sampler.candidates().empty());
    options.logit_bias = {{0, -kInf}, {1, -kInf}, {2, -kInf}};
    EXPECT_FALSE(Make(options, 3).Sample(std::vector<float>{1, 2, 3}));
  }
}

TEST(SamplerTest, InfiniteLogitsShareTheProbability) {
  SamplerOptions options = Plain();
  options.top_k = 2;
  Sampler sampler = Make(options, 5);
  ASSERT_TRUE(sampler.Sample(std::vector<float>{0, std::numeric_limits<float>::max(), kInf, kInf, 7}));
  ExpectSame(Probabilities(sampler), {{1, 0.5}, {2, 0.5}});  // the lower ids
}

TEST(SamplerTest, BiasesAddForbidAndForce) {
  SamplerOptions options = Plain();
  options.logit_bias = {{1, std::log(3.0)}, {3, -kInf}, {0, 0.5}, {0, -0.5}};
  Sampler sampler = Make(options, 4);
  ASSERT_TRUE(sampler.Sample(std::vector<float>{0, 0, 0, 100}));
  const auto p = Probabilities(sampler);
  EXPECT_EQ(p.size(), 3u);
  EXPECT_NEAR(p.at(0), 0.2, 1e-7);
  EXPECT_NEAR(p.at(1), 0.6, 1e-7);

  for (const double force : {static_cast<double>(kInf), 1e30, 1e308}) {
    options.logit_bias = {{2, force}};
    EXPECT_EQ(Make(options, 4).Sample(std::vector<float>{0, 0, 0, 100}), 2);
  }
}

TEST(SamplerTest, PenaltiesSeeThePromptAndTheAnswer) {
  SamplerOptions options = Plain();
  options.temperature = 0;
  options.repeat_penalty = 2;
  options.repeat_last_n = 2;
  Sampler sampler = Make(options, 4);
  const std::vector<float> logits = {3, 2.9f, 2.8f, 2.7f};
  std::vector<int32_t> answer;
  sampler.Accept(0);
  for (int i = 0; i < 6; ++i) {
    answer.push_back(*sampler.Sample(logits));
    sampler.Accept(answer.back());
  }
  EXPECT_EQ(answer, (std::vector<int32_t>{1, 2, 0, 1, 2, 0}));  // never one of the last two
}

TEST(SamplerTest, WindowsAreBoundedByTheContext) {
  SamplerOptions options = Plain();
  options.repeat_penalty = 1.1;
  options.repeat_last_n = std::numeric_limits<int64_t>::max();
  options.dry_multiplier = 1;
  options.dry_penalty_last_n = std::numeric_limits<int64_t>::max();
  options.dry_allowed_length = std::numeric_limits<int64_t>::max();
  options.top_k = 1'000'000'000;
  Sampler sampler = Make(options, 50, 64);
  EXPECT_LT(sampler.memory_bytes(), 10'000u);
  for (int i = 0; i < 200; ++i) sampler.Accept(i % 50);
  EXPECT_TRUE(sampler.Sample(RandomLogits(50, 1)));
}

SamplerOptions Everything() {
  SamplerOptions options;
  options.seed = 2024;
  options.temperature = 1.5;
  options.top_k = 200;
  options.typical_p = 0.98;
  options.repeat_last_n = 20;
  options.repeat_penalty = 1.2;
  options.frequency_penalty = 0.1;
  options.presence_penalty = 0.2;
  options.dry_multiplier = 0.8;
  options.logit_bias = {{3, 1.5}, {4, -kInf}};
  return options;
}

// An answer of `length` tokens to made-up logits, which depend on the last token only.
std::vector<int32_t> Answer(Sampler* sampler, int length, int32_t last = 0) {
  std::vector<int32_t> answer;
  for (int i = 0; i < length; ++i) {
    last = *sampler->Sample(RandomLogits(500, static_cast<uint64_t>(last), 5));
    sampler->Accept(last);
    answer.push_back(last);
  }
  return answer;
}

uint64_t HashOf(const std::vector<int32_t>& ids) { return HashBytes(std::as_bytes(std::span(ids))); }

TEST(SamplerTest, GoldenIds) {
  SamplerOptions options;
  options.seed = 1;
  Sampler defaults = Make(options, 500);
  const std::vector<int32_t> answer = Answer(&defaults, 300);
  EXPECT_EQ(std::vector<int32_t>(answer.begin(), answer.begin() + 8),
            (std::vector<int32_t>{209, 439, 295, 269, 45, 399, 229, 366}));
  EXPECT_EQ(HashOf(answer), 0x989b7757c76a506bull);

  Sampler everything = Make(Everything(), 500);
  EXPECT_EQ(HashOf(Answer(&everything, 300)), 0x8f37d7ebb614399eull);
  Sampler plain = Make(Plain(), 500);
  EXPECT_EQ(HashOf(Answer(&plain, 300)), 0x44668035b3b08c84ull);
}

TEST(SamplerTest, ARestoredSamplerGoesOnTheSameWay) {
  Sampler first = Make(Everything(), 500);
  const std::vector<int32_t> before = Answer(&first, 100);
  const SamplerState state = first.Save();
  const std::vector<int32_t> after = Answer(&first, 100, before.back());

  Sampler second = Make(Everything(), 500);
  Answer(&second, 33);  // what was there is forgotten
  ASSERT_TRUE(second.Restore(state));
  EXPECT_EQ(Answer(&second, 100, before.back()), after);
}

TEST(SamplerTest, AStateOfSomethingElseIsRefused) {
  Sampler sampler = Make(Everything(), 500);
  Answer(&sampler, 50);
  const SamplerState good = sampler.Save();
  const auto refused = [&](auto change) {
    SamplerState bad = good;
    change(&bad);
    const Status status = sampler.Restore(bad);
    return !status && status.error().code == ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](SamplerState* s) { s->random = {}; }));
  EXPECT_TRUE(refused([](SamplerState* s) { s->history[7] = 500; }));
  EXPECT_TRUE(refused([](SamplerState* s) { s->history[7] = -1; }));
  EXPECT_TRUE(refused([](SamplerState* s) { s->history.resize(1001); }));
  EXPECT_TRUE(refused([](SamplerState* s) { s->dry.breaker_progress.pop_back(); }));
  EXPECT_TRUE(refused([](SamplerState* s) { s->dry.breaker_progress[0] = 2; }));
  EXPECT_TRUE(sampler.Restore(good));
}

TEST(SamplerTest, NoTokenCostsAnAllocation) {
  for (const SamplerOptions& options : {Plain(), Everything()}) {
    Sampler sampler = Make(options, 500);
    std::vector<std::vector<float>> logits;
    for (uint64_t i = 0; i < 20; ++i) logits.push_back(RandomLogits(500, i));
    const size_t before = Allocations();
    for (int i = 0; i < 200; ++i) sampler.Accept(*sampler.Sample(logits[static_cast<size_t>(i) % 20]));
    EXPECT_EQ(Allocations(), before);
  }
  EXPECT_GT(Allocations(), 0u);
}

}  // namespace
}  // namespace sluice::sample
