// A killed process comes back where it was: `run --snapshot`, and chat's --continue.
#include <fcntl.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "whole/fixture.h"

namespace sluice::whole {
namespace {

using testing::HasSubstr;

class SnapshotTest : public ProgramTest {
 protected:
  const std::string model_ = Save(TinyLlama(4096));
  const std::string state_ = home_ / "state";

  // Starts the program and kills it as soon as there is a snapshot.
  void KillBehindThePrompt(Arguments arguments) {
    const pid_t child = ::fork();
    SLUICE_CHECK(child >= 0);
    if (child == 0) {
      const int nothing = ::open("/dev/null", O_RDWR);
      for (const int fd : {0, 1, 2}) ::dup2(nothing, fd);
      app::testing::AtTerminal::Execute(home_.path(), std::move(arguments));
    }
    while (!std::filesystem::exists(state_)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it was done before it was killed";
  }
};

TEST_F(SnapshotTest, AKilledRunDrawsTheSameTokensAndReadsNothing) {
  const auto run = [&](const char* tokens) {
    return Arguments{
        "run",    model_, "-p",   "a prompt of some words", "--snapshot", state_, "--temp", "1",
        "--json", "-c",   "4096", "--ignore-eos",           "-t",         "1",    "-n",     tokens};
  };
  KillBehindThePrompt(run("4000"));
  const std::string copy = home_ / "copy";
  std::filesystem::copy_file(state_, copy);
  const auto one = nlohmann::json::parse(Run(run("20")).out);
  EXPECT_EQ(one["cached_tokens"], one["prompt_tokens"]);
  // The drawing goes on as well, though no seed was ever named.
  std::filesystem::copy_file(copy, state_, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(nlohmann::json::parse(Run(run("20")).out)["text"], one["text"]);
}

TEST_F(SnapshotTest, AnotherModelReadsThePromptAnewAndSaysSo) {
  ASSERT_EQ(Run({"run", model_, "hi", "-n", "2", "--snapshot", state_}).exit_code, 0);
  const std::string other = Save(TinyGemma(64), "other.gguf");
  const Ran ran = Run({"run", other, "hi", "-n", "2", "--snapshot", state_});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("another model"));
}

TEST_F(SnapshotTest, ChatContinuesWithoutReadingAgain) {
  const Ran first =
      Run({"chat", model_, "-n", "4", "--ignore-eos", "--seed", "1"}, "hello there, this is a message\n");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Ran second =
      Run({"chat", model_, "-n", "4", "--ignore-eos", "--seed", "1", "--continue"}, "/stats\n");
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, testing::Not(HasSubstr(" 0 of "))) << "the model's state was not loaded";
}

TEST_F(SnapshotTest, ChatGoesOnBeyondTheContextAndSaysSoOnce) {
  std::string messages;
  for (int i = 0; i < 12; ++i) messages += "one more message of this length\n";
  const Ran ran =
      Run({"chat", model_, "-c", "256", "-n", "40", "--ignore-eos", "--seed", "1", "--no-save"}, messages);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const size_t said = ran.err.find("the context of 256 tokens is full");
  ASSERT_NE(said, std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("is full", said + 40), std::string::npos) << "said twice";
  // Where it is to stop, it stops with both numbers.
  const Ran stops = Run(
      {"chat", model_, "-c", "256", "-n", "40", "--ignore-eos", "--overflow", "stop", "--no-save"}, messages);
  EXPECT_NE(stops.exit_code, 0);
  EXPECT_THAT(stops.err, HasSubstr("256"));
}

TEST_F(SnapshotTest, OverflowFlags) {
  const Arguments run{"run", model_, "-p", "hi", "-n", "600", "--ignore-eos", "--json", "--seed", "1"};
  const auto with = [&](const Arguments& more) {
    Arguments all = run;
    all.insert(all.end(), more.begin(), more.end());
    return Run(all);
  };
  EXPECT_THAT(with({"-c", "256"}).out, HasSubstr("\"length\""));
  for (const Arguments& more :
       {Arguments{"-c", "256", "--overflow", "window"}, Arguments{"--window", "200", "--sinks", "8"},
        Arguments{"-c", "256", "--overflow", "heavy"}}) {
    const Ran ran = with(more);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("\"generated_tokens\": 600"));
  }
  EXPECT_EQ(with({"--overflow", "maybe"}).exit_code, 2);
  EXPECT_EQ(with({"--overflow", "stop", "--window", "100"}).exit_code, 2);
  EXPECT_EQ(with({"-c", "100", "--window", "100"}).exit_code, 2);
  EXPECT_EQ(with({"--overflow", "window", "-c", "100", "--sinks", "100"}).exit_code, 2);
  const std::string learned = Save(ScriptedModel({}), "learned.gguf");
  EXPECT_EQ(Run({"run", learned, "hi", "--overflow", "window"}).exit_code, 1);
  EXPECT_EQ(Run({"chat", learned, "-n", "2"}, "hi\n").exit_code, 0) << "nobody asked for it";
}

}  // namespace
}  // namespace sluice::whole
