// --stats, --trace and plot from outside.
#include "whole/fixture.h"

namespace sluice::whole {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class ObserveTest : public ProgramTest {
 protected:
  static std::string LastLine(const std::string& text) {
    const size_t end = text.find_last_not_of('\n');
    const size_t begin = text.rfind('\n', end);
    return text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
  }
  std::string Contents(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(ObserveTest, StatsStandUnderTheAnswer) {
  const std::string model = Save(TinyLlama());
  const Ran ran =
      Run({"run", model, "hi", "-n", "5", "--ignore-eos", "--temp", "0", "--stats", "--memory", "200M"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, AllOf(HasSubstr("weights.pinned"), HasSubstr("activations"), HasSubstr("unaccounted"),
                             HasSubstr("PSS"), HasSubstr("of a budget of 200 MiB"), HasSubstr("read a token"),
                             HasSubstr("page faults, major")));
  EXPECT_THAT(LastLine(ran.err), StartsWith("bound by: storage "));
  EXPECT_THAT(ran.out, Not(HasSubstr("bound by")));
  EXPECT_THAT(Run({"run", model, "hi", "-n", "5", "--temp", "0"}).err, Not(HasSubstr("bound by")));
}

TEST_F(ObserveTest, JsonHasTheSame) {
  const std::string model = Save(TinyLlama());
  const auto stats = RunJson(model, {"hi", "-n", "5", "--ignore-eos", "--memory", "200M"})["stats"];
  EXPECT_EQ(stats["budget_bytes"], 200 << 20);
  EXPECT_EQ(stats["residency"], "resident");
  for (const char* account : {"weights.pinned", "kv", "activations", "tokenizer"}) {
    EXPECT_GT(stats["accounts"][account]["used_bytes"], 0) << account;
    EXPECT_EQ(stats["accounts"][account]["used_bytes"], stats["accounts"][account]["planned_bytes"])
        << account;
  }
  for (const char* key : {"rss_bytes", "peak_rss_bytes", "virtual_bytes"}) EXPECT_GT(stats[key], 0) << key;
  EXPECT_EQ(stats["answering"]["tokens"], 4);
  EXPECT_EQ(stats["answering"]["bytes_read"], 0) << "all weights were in memory";
  EXPECT_EQ(stats["bound_by"]["work"], "answering");
  EXPECT_TRUE(stats["bound_by"]["storage"].is_number());
  EXPECT_TRUE(stats["bound_by"]["compute"].is_null()) << "nobody has measured this device's memory";
}

TEST_F(ObserveTest, StreamedWeightsAreCounted) {
  const auto stats =
      RunJson(Save(TinyLlama()), {"hi", "-n", "5", "--ignore-eos", "--residency", "lru"})["stats"];
  EXPECT_EQ(stats["residency"], "lru");
  EXPECT_GT(stats["answering"]["bytes_read_per_token"], 0);
  EXPECT_GT(stats["accounts"]["weights.stream"]["used_bytes"], 0);
  const auto mapped =
      RunJson(Save(TinyLlama()), {"hi", "-n", "5", "--ignore-eos", "--residency", "mmap"})["stats"];
  EXPECT_TRUE(mapped["answering"]["stall_seconds"].is_null());
  EXPECT_TRUE(mapped["bound_by"]["storage"].is_null());
}

TEST_F(ObserveTest, AMeasuredRoofTellsMemoryFromComputing) {
  const std::string model = Save(TinyLlama());
  EXPECT_THAT(LastLine(Run({"run", model, "hi", "-n", "3", "--ignore-eos", "--stats"}).err),
              HasSubstr("`sluice plan` has not"));
  const Ran bench = Run({"bench", model, "-p", "0", "-n", "4", "-r", "1", "--stats"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_THAT(LastLine(bench.err), AllOf(HasSubstr("compute"), Not(HasSubstr("`sluice plan` has not"))));
}

TEST_F(ObserveTest, ChatAndBenchHaveThemToo) {
  const std::string model = Save(TinyLlama());
  const Ran chat =
      Run({"chat", model, "--no-save", "--stats", "-n", "4", "--trace", "chat.json"}, "hi\nand\n");
  EXPECT_EQ(chat.exit_code, 0) << chat.err;
  EXPECT_THAT(LastLine(chat.err), StartsWith("bound by: storage "));
  EXPECT_THAT(Contents(home_ / "chat.json"), AllOf(HasSubstr("\"pass\""), testing::EndsWith("]}\n")));
  const Ran bench = Run({"bench", model, "-p", "8", "-n", "4", "-r", "2", "--no-roof", "--stats", "--json",
                         "--trace", "b.json"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  const auto json = nlohmann::json::parse(bench.out);
  EXPECT_EQ(json["stats"]["answering"]["tokens"], 8);
  EXPECT_EQ(json["stats"]["reading"]["tokens"], 16);
  EXPECT_EQ(json["bytes_read_per_token"], 0);
  EXPECT_THAT(LastLine(bench.err), StartsWith("bound by: storage "));
  EXPECT_THAT(Contents(home_ / "b.json"), HasSubstr("\"pass\""));
}

TEST_F(ObserveTest, WithoutRoofsNothingIsSaidOfThem) {
  const std::string model = Save(TinyLlama());
  std::vector<std::string> decode = {"bench", model, "-p", "0", "-n", "2", "-r", "1", "--no-roof"};
  std::vector<std::string> attention = {"bench", model, "--attention", "64,96",    "-p",
                                        "4",     "-r",  "1",           "--no-roof"};
  const Ran text = Run(decode), table = Run(attention);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(text.out, Not(HasSubstr("of the roof")));
  EXPECT_THAT(table.out, HasSubstr("q8_0/q4_0"));
  decode.emplace_back("--json");
  attention.emplace_back("--json");
  const auto json = nlohmann::json::parse(Run(decode).out);
  const auto depths = nlohmann::json::parse(Run(attention).out)["attention"];
  EXPECT_TRUE(json["decode_share_of_roof"].is_null());
  ASSERT_EQ(depths.size(), 6u);
  EXPECT_EQ(depths[0]["depth"], 64);
  EXPECT_EQ(depths[5]["kv_v"], "q4_0");
  for (const auto& depth : depths) {
    EXPECT_GT(depth["seconds"], 0);
    EXPECT_EQ(depth["prompt_rows"], 4);
    EXPECT_TRUE(depth["share_of_roof"].is_null());
  }
}

TEST_F(ObserveTest, ATraceIsDrawn) {
  const std::string model = Save(TinyLlama());
  for (const char* residency : {"resident", "mmap"}) {
    const Ran ran = Run({"run", model, "hi", "-n", "8", "--ignore-eos", "--residency", residency, "--trace",
                         std::string(residency) + ".json"});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
  const Ran one = Run({"plot", "resident.json", "-o", "one.svg"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, IsEmpty());
  EXPECT_THAT(Contents(home_ / "one.svg"), AllOf(StartsWith("<svg"), HasSubstr("weights.pinned"),
                                                 HasSubstr("resident"), HasSubstr("Answering, tokens/s")));
  const Ran both = Run({"plot", "resident.json", "mmap.json", "-o", "both.svg"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(Contents(home_ / "both.svg"),
              AllOf(HasSubstr("resident accounts"), HasSubstr("mmap resident")));
}

TEST_F(ObserveTest, AFileThatCannotBeWrittenIsRefusedBeforeTheModelIsLoaded) {
  // A file that is no model: whoever looks at it first would say so.
  const std::string bad = home_.Write("bad.gguf", "this is no model");
  const Ran ran = Run({"run", bad, "hi", "--trace", "no/such/folder/t.json"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("no/such/folder/t.json"), Not(HasSubstr("bad.gguf"))));
  const Ran wrong = Run({"run", bad, "hi", "--trace", "t.json"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(home_ / "t.json")) << "nothing was run";
}

TEST_F(ObserveTest, MistakesArePlainToSee) {
  EXPECT_THAT(Run({"run", "m.gguf", "hi", "--stat"}).err, HasSubstr("--stats"));
  EXPECT_THAT(Run({"plto"}).err, HasSubstr("plot"));
  EXPECT_EQ(Run({"plot", "t.json"}).exit_code, 2) << "without -o";
  const Ran missing = Run({"plot", "none.json", "-o", "x.svg"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("none.json"));
  home_.Write("odd.json", "{\"traceEvents\":[{]}");
  const Ran odd = Run({"plot", "odd.json", "-o", "x.svg"});
  EXPECT_EQ(odd.exit_code, 1);
  EXPECT_THAT(odd.err, AllOf(HasSubstr("odd.json"), HasSubstr("byte 18")));
  EXPECT_EQ(Run({"plot", "odd.json", "-o", "odd.json"}).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(home_ / "x.svg"));
}

}  // namespace
}  // namespace sluice::whole
