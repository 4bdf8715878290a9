// Ctrl-C in every phase of `sluice run`: exit code 130, whatever was under way.
#include <fcntl.h>

#include "whole/fixture.h"

namespace sluice::whole {
namespace {

// The program while it runs, with pipes to its stdin and stdout.
class Running {
 public:
  Running(const std::string& home, Arguments arguments) {
    int in[2], out[2];
    SLUICE_CHECK(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0);
    child_ = ::fork();
    SLUICE_CHECK(child_ >= 0);
    if (child_ == 0) {
      const int err = ::open((home + "/.stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::dup2(err, 2);
      app::testing::AtTerminal::Execute(home, std::move(arguments));
    }
    ::close(in[0]);
    ::close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  ~Running() {
    ::close(in_);
    ::close(out_);
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }

  // Returns when the program has taken all but what a pipe holds: it is up, and listens to signals.
  void Feed(size_t bytes) {
    const std::string block(4096, 'a');
    for (size_t fed = 0; fed < bytes;) {
      const ssize_t written = ::write(in_, block.data(), block.size());
      SLUICE_CHECK(written > 0);
      fed += static_cast<size_t>(written);
    }
  }
  void EndInput() {
    ::close(in_);
    in_ = -1;
  }
  void WaitForOutput() {
    char byte;
    SLUICE_CHECK(::read(out_, &byte, 1) == 1);
  }
  int InterruptAndWait() {
    ::kill(child_, SIGINT);
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_ = 0;
  int in_ = -1, out_ = -1;
};

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
