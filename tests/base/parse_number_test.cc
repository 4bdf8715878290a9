#include "base/parse_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice {
namespace {

TEST(ParseNumber, TakesTheNumberInFront) {
  double value = 7;
  EXPECT_EQ(ParseFloating("-0.5e1,3", &value), 6u);
  EXPECT_EQ(value, -5.0);
  EXPECT_EQ(ParseFloating("4K", &value), 1u);
  EXPECT_EQ(value, 4.0);
  for (const char* none : {"", "x", "+1", " 1", "-", ".", "e5"}) {
    value = 7;
    EXPECT_EQ(ParseFloating(none, &value), 0u) << none;
    EXPECT_EQ(value, 7.0) << none;
  }
}

TEST(ParseNumber, WholeTextOrNothing) {
  float value = 7;
  EXPECT_FALSE(ParseWholeFloating("1.5 ", &value));
  EXPECT_FALSE(ParseWholeFloating("", &value));
  EXPECT_FALSE(ParseWholeFloating("1e60", &value));
  EXPECT_EQ(value, 7.0f);
  EXPECT_TRUE(ParseWholeFloating("-inf", &value));
  EXPECT_EQ(value, -std::numeric_limits<float>::infinity());
}

template <typename T>
void ExpectBothReadTheSame(std::string_view text) {
  T usual = 7, streamed = 7;
  const size_t used = ParseFloating(text, &usual);
  EXPECT_EQ(internal::ParseFloatingWithStream(text, &streamed), used) << text;
  if (std::isnan(usual)) {
    EXPECT_TRUE(std::isnan(streamed)) << text;
  } else {
    EXPECT_EQ(streamed, usual) << text;
    EXPECT_EQ(std::signbit(streamed), std::signbit(usual)) << text;
  }
}

TEST(ParseNumber, TheWayWithoutFromCharsReadsTheSame) {
  for (const char* text : {"",
                           "0",
                           "-0",
                           "1",
                           "-1.",
                           ".5",
                           "-.5",
                           ".",
                           "-",
                           "-.",
                           "1.5e3",
                           "1e",
                           "1e+",
                           "1e-x",
                           "1E+2",
                           "1e+2.5",
                           "1..2",
                           "1.2.3",
                           "0x10",
                           "1,5",
                           "1 000",
                           "12abc",
                           "inf",
                           "-INF",
                           "infi",
                           "Infinity",
                           "-nan",
                           "NaN",
                           "in",
                           "+1",
                           " 1",
                           "1e400",
                           "-1e400",
                           "1e-400",
                           "-0e9",
                           "0.0e-999",
                           "3.4e38",
                           "1e39",
                           "0.1",
                           "16777217",
                           "9007199254740993",
                           "123456789012345678901234567890",
                           "00012"}) {
    ExpectBothReadTheSame<double>(text);
    ExpectBothReadTheSame<float>(text);
  }
}

}  // namespace
}  // namespace sluice
