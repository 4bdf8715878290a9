// Ctrl-C in every phase of `sluice run`: exit code 130, whatever was under way.
#include "whole/running.h"

namespace sluice::whole {
namespace {

class InterruptTest : public ProgramTest {
 protected:
  // A prompt of 300,000 tokens: more work than the test has patience for.
  static constexpr size_t kPrompt = 300'000;
  std::string Model() { return Save(TinyLlama(400'000)); }
};

TEST_F(InterruptTest, WhileItAnswers) {
  Running run(home_.path(), {"run", Model(), "hi", "-c", "100000", "-n", "-1", "--ignore-eos", "--temp", "1"});
  run.EndInput();
  run.WaitForOutput();
  EXPECT_EQ(run.InterruptAndWait(), 130);
}

TEST_F(InterruptTest, WhileWeightsAreStreamed) {
  Running run(home_.path(), {"run", Model(), "hi", "-c", "100000", "-n", "-1", "--ignore-eos", "--residency",
                             "lru", "--lru-blocks", "1", "--temp", "1"});
  run.EndInput();
  run.WaitForOutput();
  EXPECT_EQ(run.InterruptAndWait(), 130);
}

TEST_F(InterruptTest, WhileItWaitsForMoreInput) {
  Running run(home_.path(), {"run", Model(), "hi"});
  run.Feed(kPrompt);
  EXPECT_EQ(run.InterruptAndWait(), 130);
}

TEST_F(InterruptTest, WhileThePromptIsRead) {
  Running run(home_.path(), {"run", Model(), "-c", "400000"});
  run.Feed(kPrompt);
  run.EndInput();
  ::usleep(300'000);  // well into the prompt, most likely; loading otherwise, which must end the same way
  EXPECT_EQ(run.InterruptAndWait(), 130);
}

TEST_F(InterruptTest, WhileItLoads) {
  Running run(home_.path(), {"run", Model(), "-c", "400000"});
  run.Feed(kPrompt);
  run.EndInput();
  EXPECT_EQ(run.InterruptAndWait(), 130);
}

}  // namespace
}  // namespace sluice::whole
