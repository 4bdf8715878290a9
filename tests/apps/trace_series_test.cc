#include "sluice/trace_series.h"

#include <gmock/gmock.h>

#include "sluice/chart_svg.h"

namespace sluice::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kTrace[] =
    R"({"displayTimeUnit":"ms","otherData":{"model":"M","residency":"pin","budget_bytes":4000},"traceEvents":[
{"name":"process_name","ph":"M","pid":1,"args":{"name":"sluice"}},
{"name":"memory","ph":"C","pid":1,"ts":2000000,"args":{"weights.pinned":3000,"kv":50}},
{"name":"memory","ph":"C","pid":1,"ts":0,"args":{"weights.pinned":1000,"kv":50}},
{"name":"resident","ph":"C","pid":1,"ts":0,"args":{"RSS":900}},
{"name":"qkv","cat":"step","ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"args":{"layer":0}},
{"name":"tokens/s","ph":"C","pid":1,"ts":1000000,"args":{"reading":0,"answering":12.5}},
{"name":"storage","ph":"C","pid":1,"ts":500000,"args":{"bytes read":100}},
{"name":"storage","ph":"C","pid":1,"ts":1500000,"args":{"bytes read":350}},
{"name":"temperature","ph":"C","pid":1,"ts":1500000,"args":{"°C":51.5}},
{"name":"of another program","ph":"C","pid":7,"ts":3,"args":{"x":1}}
]})";

std::string Refusal(std::string_view text) {
  const auto trace = ReadTrace(text);
  if (trace) return "it was read";
  EXPECT_EQ(trace.error().code, ErrorCode::kCorrupt);
  return trace.error().message;
}

std::string Counter(std::string_view rest) {
  return R"([{"ph":"C","name":"resident",)" + std::string(rest) + "}]";
}

TEST(TraceSeriesTest, TakesTheSeriesOfATrace) {
  const auto trace = ReadTrace(kTrace);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->model, "M");
  EXPECT_EQ(trace->residency, "pin");
  EXPECT_EQ(trace->budget_bytes, 4000u);
  ASSERT_EQ(trace->accounts.size(), 2u);
  EXPECT_EQ(trace->accounts[0].name, "weights.pinned") << "in the order of the file";
  ASSERT_EQ(trace->accounts[0].points.size(), 2u);
  EXPECT_EQ(trace->accounts[0].points[0].value, 1000) << "sorted by time";
  EXPECT_EQ(trace->Total()[1].value, 3050);
  EXPECT_EQ(trace->Total()[1].seconds, 2);
  EXPECT_EQ(trace->answering.at(0).value, 12.5);
  EXPECT_EQ(trace->temperature.at(0).value, 51.5);
  EXPECT_TRUE(trace->frequency.empty());
  EXPECT_EQ(trace->end_seconds(), 2);
  const Series rate = RateOf(trace->bytes_read, 0.01);
  ASSERT_EQ(rate.size(), 2u);
  EXPECT_EQ(rate[0].seconds, 0.5);
  EXPECT_EQ(rate[0].value, 250);
  EXPECT_EQ(rate[1].seconds, 1.5);
  EXPECT_EQ(rate[1].value, 0);
}

TEST(TraceSeriesTest, AListOfEventsAloneIsATraceToo) {
  const auto trace = ReadTrace(Counter(R"("ts":5,"args":{"RSS":7})"));
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->resident.size(), 1u);
  EXPECT_EQ(trace->budget_bytes, std::nullopt);
}

TEST(TraceSeriesTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(Refusal(""), HasSubstr("not JSON at byte"));
  EXPECT_THAT(Refusal(std::string_view(kTrace).substr(0, 400)), HasSubstr("not JSON at byte 401"));
  EXPECT_THAT(Refusal("\xff\xfe\x00"), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal("[1e999]"), HasSubstr("not JSON"));
  for (const char* nothing : {"{}", "[]", "1", "null", R"({"traceEvents":[{"ph":"X","name":"x"}]})"})
    EXPECT_THAT(Refusal(nothing), HasSubstr("no series"));
  EXPECT_THAT(Refusal(Counter(R"("ts":"5","args":{"RSS":7})")), AllOf(HasSubstr("event 0"), HasSubstr("ts")));
  EXPECT_THAT(Refusal(Counter(R"("ts":-5,"args":{"RSS":7})")), HasSubstr("ts"));
  EXPECT_THAT(Refusal(Counter(R"("ts":1e17,"args":{"RSS":7})")), HasSubstr("ts"));
  EXPECT_THAT(Refusal(Counter(R"("ts":5,"args":{"RSS":-1})")), HasSubstr("RSS"));
  EXPECT_THAT(Refusal(Counter(R"("ts":5,"args":{"RSS":[]})")), HasSubstr("RSS"));
  EXPECT_THAT(Refusal(Counter(R"("ts":5,"args":{"RSS":1e300})")), HasSubstr("RSS"));
  EXPECT_THAT(Refusal(Counter(R"("ts":5,"args":{})")), HasSubstr("RSS"));
  EXPECT_THAT(Refusal(Counter(R"("ts":5,"args":3)")), HasSubstr("without a name or values"));
  EXPECT_THAT(Refusal(R"([{"ph":"C","name":7,"ts":5,"args":{}}])"), HasSubstr("without a name or values"));
}

TEST(TraceSeriesTest, WhatWouldTakeTooMuchIsRefused) {
  EXPECT_THAT(Refusal(std::string(100'000, '[')), HasSubstr("nested"));
  std::string many = "[0";
  for (int i = 0; i < 20'000; ++i) many += ",0";
  EXPECT_THAT(Refusal(many + "]"), HasSubstr("values"));
  std::string accounts = R"([{"ph":"C","name":"memory","ts":1,"args":{)";
  for (int i = 0; i < 20; ++i) accounts += fmt::format("{}\"a{}\":1", i == 0 ? "" : ",", i);
  EXPECT_THAT(Refusal(accounts + "}}]"), HasSubstr("accounts"));
  EXPECT_THAT(
      Refusal(R"([{"ph":"C","name":"memory","ts":1,"args":{")" + std::string(1000, 'x') + R"(":1}}])"),
      HasSubstr("name"));
}

TEST(ChartSvgTest, DrawsWhatThereIs) {
  const Series flat{{0, 5}, {10, 5}}, rising{{0, 1}, {5, 9}, {10, 3}}, none;
  const ChartPanel panels[] = {
      {.title = "Memory, B", .stacked = {{"kv", &flat, 1}}, .lines = {{"resident", &rising}}},
      {.title = "Nothing", .lines = {{"empty", &none}}}};
  const std::string svg = DrawCharts("a & <b> \"c\"\x1b[31m", panels, 10);
  EXPECT_THAT(svg, AllOf(testing::StartsWith("<svg xmlns"), testing::EndsWith("</svg>\n")));
  EXPECT_THAT(svg, AllOf(HasSubstr("Memory, B"), HasSubstr(">kv<"), HasSubstr(">resident<"),
                         HasSubstr("prefers-color-scheme:dark")));
  EXPECT_THAT(svg, HasSubstr("a &amp; &lt;b&gt; &quot;c&quot;"));
  EXPECT_THAT(svg, Not(HasSubstr("\x1b")));
  EXPECT_THAT(svg, Not(HasSubstr("Nothing")));
  EXPECT_THAT(svg, HasSubstr(">10 s<"));
}

TEST(ChartSvgTest, StepsHoldTheirValue) {
  const Series rate{{0, 4}, {5, 8}, {10, 0}};
  const ChartPanel panel{.title = "Rate", .lines = {{.label = "rate", .points = &rate, .steps = true}}};
  EXPECT_THAT(DrawCharts("steps", {&panel, 1}, 10),
              testing::ContainsRegex("M64.0 [0-9.]+H500.0V[0-9.]+H936.0V[0-9.]+\""));
}

TEST(ChartSvgTest, AMillionPointsMakeASmallFile) {
  Series saw;
  for (int i = 0; i < 1'000'000; ++i) saw.push_back({i * 0.01, static_cast<double>(i % 1000)});
  const ChartPanel panel{.title = "Saw", .lines = {{"saw", &saw}}};
  const std::string svg = DrawCharts("many", {&panel, 1}, 10'000);
  EXPECT_LT(svg.size(), 200'000u);
}

TEST(ChartSvgTest, OddExtentsAreDrawn) {
  const Series point{{0, 0}}, huge{{0, 1e18}, {1e9, 0}}, same{{3, 7}, {3, 7}};
  for (const Series* series : {&point, &huge, &same}) {
    for (const double seconds : {0.0, 1e-9, 1e9}) {
      const ChartPanel panel{
          .title = "Odd", .stacked = {{"a", series, 2}}, .lines = {{"l", series}}, .from_zero = false};
      const std::string svg = DrawCharts("odd", {&panel, 1}, seconds);
      EXPECT_THAT(svg, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
      EXPECT_LT(svg.size(), 20'000u);
    }
  }
}

}  // namespace
}  // namespace sluice::app
