// sluice run and sluice logits from outside: what is printed, what the flags do, how it ends.
#include <cmath>

#include "whole/fixture.h"

namespace sluice::whole {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

class RunTest : public ProgramTest {};

TEST_F(RunTest, StdoutIsOnlyTheAnswer) {
  const Ran ran = Run({"run", SaveAnswer(Tokens("yes 漢")), "hi"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "yes 漢\n");
  EXPECT_THAT(ran.err, HasSubstr("tok/s"));
}

TEST_F(RunTest, JsonHasEverythingAndIsAllOfStdout) {
  const std::string text = "👩‍👩‍👧é漢 \"quoted\" \\ \t";
  const auto json = RunJson(SaveAnswer(Tokens(text)), {"-p", "hi"});
  EXPECT_EQ(json["text"], text);
  EXPECT_EQ(json["finish_reason"], "stop");
  EXPECT_EQ(json["generated_tokens"], text.size() + 1);
  for (const char* key : {"prompt_tokens", "generated_tokens", "ttft_ms", "prefill_tokens_per_second",
                          "decode_tokens_per_second", "peak_rss_bytes", "threads"}) {
    ASSERT_TRUE(json[key].is_number()) << key;
    EXPECT_GT(json[key], 0) << key;
  }
  EXPECT_TRUE(json["kernels"].is_string());
  EXPECT_EQ(RunJson(SaveAnswer(Tokens("é漢")), {"-p", "hi"})["text_base64"], "w6nmvKI=");
}

TEST_F(RunTest, AnAnswerCutInsideACharacterIsStillJson) {
  const auto json = RunJson(SaveAnswer(Tokens("ok 😀")), {"-p", "hi", "-n", "5"});
  EXPECT_EQ(json["text"], "ok \uFFFD");
  EXPECT_EQ(json["finish_reason"], "length");
}

TEST_F(RunTest, StopStrings) {
  const std::string model = SaveAnswer(Tokens("one STOP two"));
  const Ran ran = Run({"run", model, "hi", "--stop", "STOP", "--stop", "never"});
  EXPECT_EQ(ran.out, "one \n");
  EXPECT_EQ(RunJson(model, {"-p", "hi", "--stop", "STOP"})["finish_reason"], "stop");
}

TEST_F(RunTest, ThePromptComesFromAllItsSources) {
  const std::string model = Save(ScriptedModel({}, "</s>"));
  const std::string file = home_.Write("file.txt", "from the file");
  const auto tokens = [&](const Arguments& more, const std::string& input = "") {
    return RunJson(model, more, input)["prompt_tokens"].get<int64_t>();
  };
  // Every character is a token here.
  const int64_t frame = tokens({"-p", "x"}) - 1;
  EXPECT_EQ(tokens({"x"}), frame + 1);
  EXPECT_EQ(tokens({}, "piped"), frame + 5);
  EXPECT_EQ(tokens({"ab:"}, "piped"), frame + 3 + 2 + 5);
  EXPECT_EQ(tokens({"-f", file}), frame + 13);
  EXPECT_EQ(tokens({"ab:", "--file", file}, "piped"), frame + 3 + 2 + 13 + 2 + 5);
  EXPECT_GT(tokens({"x", "-s", "be brief"}), frame + 1 + 8);
  EXPECT_EQ(tokens({"x", "-s", "be brief"}), tokens({"x", "--system", "be brief"}));
  EXPECT_EQ(tokens({"x", "--raw"}), 3) << "BOS, the space in front, and x";
  EXPECT_EQ(Run({"run", model}).exit_code, 2) << "no prompt";
}

// P23: NUL in the prompt cuts nothing off, whichever way it comes.
TEST_F(RunTest, NulInThePromptIsKept) {
  const std::string model = Save(ScriptedModel({}, "</s>"));
  const std::string text("a\0b", 3);
  const int64_t expected = RunJson(model, {"abc"})["prompt_tokens"];
  EXPECT_EQ(RunJson(model, {"--prompt-base64", "YQBi"})["prompt_tokens"], expected);
  EXPECT_EQ(RunJson(model, {"-f", home_.Write("nul.txt", text)})["prompt_tokens"], expected);
  EXPECT_EQ(RunJson(model, {}, text)["prompt_tokens"], expected);
  EXPECT_EQ(Run({"run", model, "--prompt-base64", "!!"}).exit_code, 2);
}

TEST_F(RunTest, LengthsAtTheEdgeOfTheContext) {
  const std::string model = Save(TinyLlama());
  const auto raw = [&](size_t characters, const Arguments& more = {}) {
    Arguments arguments{"run", model, "--raw", "-c", "64", "--temp", "0", "--ignore-eos", "--json", "-p",
                        std::string(characters, 'a')};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  };
  // Two more tokens than characters: BOS and the space in front.
  EXPECT_EQ(raw(61).exit_code, 0);
  for (const size_t characters : {62u, 63u, 700u}) {
    const Ran ran = raw(characters);
    EXPECT_EQ(ran.exit_code, 3);
    EXPECT_THAT(ran.err, AllOf(HasSubstr(std::to_string(characters + 2)), HasSubstr("64")));
    EXPECT_THAT(ran.out, IsEmpty());
  }
  for (const char* count : {"0", "-1"}) {
    const Ran ran = raw(10, {"-n", count});
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_THAT(ran.out, HasSubstr("\"finish_reason\": \"length\"")) << count;
  }
}

// P37: however much room there is, an answer ends where nobody said how long it may be.
TEST_F(RunTest, AnAnswerHasAnEnd) {
  const Ran ran =
      Run({"run", Save(TinyLlama()), "hi", "--overflow", "window", "--ignore-eos", "--json", "-t", "1"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("\"generated_tokens\": 4096"), HasSubstr("\"finish_reason\": \"length\"")));
}

TEST_F(RunTest, SeedsMakeAnswersRepeatable) {
  const std::string model = Save(TinyLlama());
  const auto answer = [&](const Arguments& more) {
    Arguments arguments{"run", model, "hi", "--json", "--ignore-eos", "--temp", "2", "-n", "30"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
  };
  const auto seven = answer({"--seed", "7"});
  EXPECT_EQ(answer({"--seed", "7"})["text"], seven["text"]);
  EXPECT_NE(answer({"--seed", "8"})["text"], seven["text"]);
  const auto drawn = answer({});
  EXPECT_EQ(answer({"--seed", std::to_string(drawn["seed"].get<uint64_t>())})["text"], drawn["text"]);
}

TEST_F(RunTest, KernelsThreadsAndBatchesChangeNothing) {
  const std::string model = Save(TinyLlama(512));
  const std::string prompt = "the quick brown fox jumps over the lazy dog, again and again and again and once more for luck";
  std::string expected;
  int ran_with = 0;
  for (const char* kernels : {"scalar", "avx2", "avx512vnni", "neon", "dotprod", "i8mm"}) {
    for (const char* threads : {"1", "2"}) {
      for (const char* batch : {"1", "7", "512"}) {
        const Ran ran = Run({"run", model, prompt, "--temp", "1", "--seed", "3", "-n", "24", "--ignore-eos", "--kernels", kernels,
                             "-t", threads, "--batch", batch});
        if (ran.exit_code != 0 && std::string_view(kernels) != "scalar") continue;  // not on this processor
        ++ran_with;
        if (expected.empty()) expected = ran.out;
        EXPECT_EQ(ran.out, expected) << kernels << " " << threads << " " << batch;
      }
    }
  }
  EXPECT_GE(ran_with, 6);
}

TEST_F(RunTest, LogitsAreWhatRunSees) {
  const std::string model = Save(TinyLlama());
  const auto logits = [&](const Arguments& more) {
    Arguments arguments{"logits", model, "-o", home_ / "out.bin"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, IsEmpty());
    std::ifstream file(home_ / "out.bin", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const size_t row = vocabulary_.tokens.size() * sizeof(float);
  const std::string all = logits({"-p", "abcdefgh"});
  ASSERT_EQ(all.size(), 10 * row);  // BOS, the space in front, eight letters
  for (const char* batch : {"1", "2", "5", "512"}) EXPECT_EQ(logits({"-p", "abcdefgh", "--batch", batch}), all) << batch;
  EXPECT_EQ(logits({"-p", "abcdefgh", "--last"}), all.substr(9 * row));
  // The greedy token is the largest of them.
  std::vector<float> last(vocabulary_.tokens.size());
  std::memcpy(last.data(), all.data() + 9 * row, row);
  const size_t best = static_cast<size_t>(std::ranges::max_element(last) - last.begin());
  const auto json = RunJson(model, {"--raw", "-p", "abcdefgh", "-n", "1", "--ignore-eos", "--kv", "f16"});
  const std::string& token = vocabulary_.tokens[best];
  if (token.size() == 1) {
    EXPECT_EQ(json["text"], token);
  }
  // Ids outside the vocabulary are a mistake of the user's.
  for (const char* ids : {"-1", "99999", "1,x"})
    EXPECT_EQ(Run({"logits", model, "-o", home_ / "no.bin", "--ids", ids}).exit_code, 2) << ids;
  EXPECT_FALSE(std::filesystem::exists(home_ / "no.bin"));
}

// P29.
TEST_F(RunTest, OddNumbersAreTakenOrRefusedByName) {
  const std::string model = Save(TinyLlama());
  for (const char* flag :
       {"--temp", "--top-k", "--top-p", "--min-p", "--typical", "--repeat-penalty", "--repeat-last-n", "--presence-penalty",
        "--frequency-penalty", "--dry-multiplier", "--dry-base", "--dry-allowed-length", "--dry-penalty-last-n", "--seed"}) {
    for (const char* value : {"-1", "0", "-2147483648", "2147483647", "9223372036854775807", "1e308", "-1e308", "nan", "inf",
                              "-inf", "5x", ""}) {
      const Ran ran = Run({"run", model, "hi", "-n", "2", std::string(flag) + "=" + value, "--seed", "1"});
      EXPECT_THAT(ran.exit_code, AnyOf(0, 2)) << flag << " " << value << ran.err;
      if (ran.exit_code == 2) {
        EXPECT_THAT(ran.out, IsEmpty()) << flag << " " << value;
      }
    }
  }
}

TEST_F(RunTest, MistakesAreUsageErrors) {
  const std::string model = Save(TinyLlama());
  for (const Arguments& wrong : std::vector<Arguments>{
           {"-c", "-5"}, {"-c", "x"}, {"--batch", "0"}, {"--batch", "-3"}, {"-t", "-1"}, {"-t", "100000"}, {"--kernels", "gpu"},
           {"--kv", "q3"}, {"--memory", "much"}, {"--memory", "0"}, {"--think", "maybe"}, {"-l", "5"}, {"-l", "99999+1"},
           {"-l", "-1+1"}, {"-n", "x"}, {"--override-kv", "nonsense"}, {"--no-such-flag"}}) {
    Arguments arguments{"run", model, "hi"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 2) << wrong[0] << " " << wrong.back() << "\n" << ran.err;
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_FALSE(ran.err.empty());
  }
}

TEST_F(RunTest, TooSmallABudgetIsExitThree) {
  const std::string model = Save(TinyLlama(100'000));
  const Ran weights = Run({"run", model, "hi", "--memory", "16K"});
  EXPECT_EQ(weights.exit_code, 3) << weights.err;
  EXPECT_THAT(weights.err, HasSubstr("it takes a budget"));
  const Ran context = Run({"run", model, "hi", "--memory", "14M", "-c", "100000"});
  EXPECT_EQ(context.exit_code, 3) << context.err;
  EXPECT_THAT(context.err, AllOf(HasSubstr("or a context of")));
  EXPECT_EQ(Run({"run", model, "hi", "--memory", "14M", "-n", "2"}).exit_code, 0);
}

TEST_F(RunTest, OverridesReachTheModel) {
  const std::string model = Save(TinyLlama());
  EXPECT_EQ(Run({"run", model, "hi", "-n", "1", "--override-kv", "llama.rope.freq_base=float:1000"}).exit_code, 0);
  const Ran ran = Run({"run", model, "hi", "--override-kv", "llama.block_count=int:3"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("blk.2."));
}

}  // namespace
}  // namespace sluice::whole
