// The built program while it runs, with pipes to its stdin and stdout.
#pragma once

#include <fcntl.h>

#include <string>
#include <utility>

#include "whole/fixture.h"

namespace sluice::whole {

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
    return Wait();
  }
  // Reads what it prints, to its end. The exit code; −1: ended by a signal.
  int Wait() {
    char bytes[4096];
    while (::read(out_, bytes, sizeof bytes) > 0) continue;
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_ = 0;
  int in_ = -1, out_ = -1;
};

}  // namespace sluice::whole
