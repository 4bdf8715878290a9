#include "sample/options.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace sluice::sample {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kHuge = 1e308;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::string Refusal(const SamplerOptions& options) {
  const Status status = Validate(options, 100);
  if (status) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  return status.error().message;
}

template <typename T>
SamplerOptions With(T SamplerOptions::*field, T value) {
  SamplerOptions options;
  options.*field = value;
  return options;
}

TEST(OptionsTest, DefaultsAreValid) { EXPECT_EQ(Refusal({}), ""); }

TEST(OptionsTest, OddNumbersAreRefusedByNameOrTaken) {
  using O = SamplerOptions;
  const struct {
    const char* name;
    double O::*field;
    std::vector<double> good, bad;
  } numbers[] = {
      {"temperature", &O::temperature, {0, 1e-300, 0.8, kHuge}, {-1, -1e-9}},
      {"top_p", &O::top_p, {0, 0.5, 1, 2, kHuge}, {-1}},
      {"min_p", &O::min_p, {0, 0.5, 1, 2, kHuge}, {-1}},
      {"typical_p", &O::typical_p, {0, 0.5, 1, 2}, {-1}},
      {"repeat_penalty", &O::repeat_penalty, {0.5, 1, 2}, {0, -1, kHuge}},
      {"presence_penalty", &O::presence_penalty, {-2, 0, 2}, {kHuge, -kHuge}},
      {"frequency_penalty", &O::frequency_penalty, {-2, 0, 2}, {kHuge, -kHuge}},
      {"dry_multiplier", &O::dry_multiplier, {0, 0.8}, {-1, kHuge}},
      {"dry_base", &O::dry_base, {1, 1.75}, {0, 0.99, -1, kHuge}},
  };
  for (const auto& n : numbers) {
    for (const double value : n.good) EXPECT_EQ(Refusal(With(n.field, value)), "") << n.name << value;
    std::vector<double> bad = n.bad;
    bad.insert(bad.end(), {kNaN, kInf, -kInf});
    for (const double value : bad)
      EXPECT_EQ(Refusal(With(n.field, value)).find(n.name), 0u) << n.name << " " << value;
  }
  const struct {
    const char* name;
    int64_t O::*field;
    std::vector<int64_t> good, bad;
  } integers[] = {
      {"top_k", &O::top_k, {0, -1, 40, 1000000000, kMin, kMax}, {}},
      {"repeat_last_n", &O::repeat_last_n, {-1, 0, 64, kMax}, {-2, kMin}},
      {"dry_allowed_length", &O::dry_allowed_length, {1, 2, kMax}, {0, -1, kMin}},
      {"dry_penalty_last_n", &O::dry_penalty_last_n, {-1, 0, 64, kMax}, {-2, kMin}},
  };
  for (const auto& n : integers) {
    for (const int64_t value : n.good) EXPECT_EQ(Refusal(With(n.field, value)), "") << n.name << value;
    for (const int64_t value : n.bad)
      EXPECT_EQ(Refusal(With(n.field, value)).find(n.name), 0u) << n.name << value;
  }
}

TEST(OptionsTest, MessagesSayWhatIsAllowed) {
  EXPECT_EQ(Refusal(With(&SamplerOptions::temperature, -1.0)),
            "temperature is -1; expected a number from 0 on");
  EXPECT_EQ(Refusal(With(&SamplerOptions::dry_base, 0.5)),
            "dry_base is 0.5; expected a number from 1 to 1000");
  EXPECT_EQ(Refusal(With(&SamplerOptions::repeat_last_n, int64_t{-2})),
            "repeat_last_n is -2; expected -1 or more");
}

TEST(OptionsTest, BiasesMustNameTokensOfTheVocabulary) {
  const auto refusal = [](int64_t id, double bias) {
    SamplerOptions options;
    options.logit_bias = {{0, 1}, {id, bias}};
    return Refusal(options);
  };
  EXPECT_EQ(refusal(99, kInf), "");
  EXPECT_EQ(refusal(99, -kInf), "");
  EXPECT_EQ(refusal(99, kHuge), "");
  EXPECT_EQ(refusal(100, 1), "logit_bias[1] names token 100; expected 0 to 99");
  EXPECT_NE(refusal(-1, 1), "");
  EXPECT_NE(refusal(1000000000000, 1), "");
  EXPECT_NE(refusal(kMin, 1), "");
  EXPECT_EQ(refusal(7, kNaN), "logit_bias[1], of token 7, is NaN");
}

TEST(OptionsTest, BreakersAreBounded) {
  const auto refusal = [](std::vector<std::string> breakers) {
    return Refusal(With(&SamplerOptions::dry_sequence_breakers, std::move(breakers)));
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({std::string(128, 'x')}), "");
  EXPECT_NE(refusal({"\n", ""}).find("dry_sequence_breakers[1]"), std::string::npos);
  EXPECT_NE(refusal({std::string(129, 'x')}), "");
  EXPECT_NE(refusal(std::vector<std::string>(65, "x")), "");
}

TEST(OptionsTest, TheFileSuggestsAndBadSuggestionsAreNamed) {
  std::vector<std::string> ignored;
  SamplerOptions options = DefaultOptions({}, &ignored);
  EXPECT_EQ(options.temperature, 0.8);
  EXPECT_EQ(options.top_p, 0.95);
  EXPECT_EQ(options.min_p, 0.05);
  EXPECT_EQ(options.top_k, 0);
  EXPECT_TRUE(ignored.empty());

  GenerationDefaults file;
  file.temperature = 0.6;
  file.top_k = 20;
  file.min_p = 0;
  file.repeat_penalty = -3;  // nonsense
  options = DefaultOptions(file, &ignored);
  EXPECT_EQ(options.temperature, 0.6);
  EXPECT_EQ(options.top_k, 20);
  EXPECT_EQ(options.min_p, 0);
  EXPECT_EQ(options.top_p, 0.95);
  EXPECT_EQ(options.repeat_penalty, 1);
  ASSERT_EQ(ignored.size(), 1u);
  EXPECT_EQ(ignored[0], "repeat_penalty is -3; expected a number from 0.001 to 1000");
}

}  // namespace
}  // namespace sluice::sample
