// The built program, run as a user runs it: with a home of its own, through pipes or at a terminal.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "platform/temp_folder.h"

namespace sluice::app::testing {

struct Ran {
  int exit_code = -1;  // −1: ended by a signal
  std::string out, err;
};

// A process at a terminal of 80 columns.
class AtTerminal {
 public:
  AtTerminal(const std::string& home, std::vector<std::string> arguments) {
    winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    child_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    SLUICE_CHECK(child_ >= 0);
    if (child_ == 0) Execute(home, arguments);
  }
  ~AtTerminal() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(terminal_);
  }

  void Type(std::string_view bytes) {
    SLUICE_CHECK(::write(terminal_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }

  // Reads until `text` has come, and forgets what came up to there. False when the process ends or is silent for a
  // minute first.
  bool WaitFor(std::string_view text) {
    for (;;) {
      const size_t at = screen_.find(text);
      if (at != std::string::npos) {
        screen_.erase(0, at + text.size());
        return true;
      }
      if (!ReadMore()) return false;
    }
  }

  // The exit code; what was shown until then is in screen().
  int Wait() {
    while (ReadMore()) continue;
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& screen() const { return screen_; }

  [[noreturn]] static void Execute(const std::string& home, std::vector<std::string> arguments) {
    for (const char* name : {"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "SLUICE_MODELS", "OLLAMA_MODELS",
                             "HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE"})
      ::unsetenv(name);
    ::setenv("HOME", home.c_str(), 1);
    ::setenv("TERM", "xterm", 1);
    if (::chdir(home.c_str()) != 0) ::_exit(126);
    std::vector<char*> argv{const_cast<char*>("sluice")};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(SLUICE_PROGRAM, argv.data());
    ::_exit(127);
  }

 private:
  bool ReadMore() {
    pollfd ready{terminal_, POLLIN, 0};
    if (::poll(&ready, 1, 60'000) <= 0) return false;
    char bytes[4096];
    const ssize_t count = ::read(terminal_, bytes, sizeof bytes);
    if (count <= 0) return false;
    screen_.append(bytes, static_cast<size_t>(count));
    return true;
  }

  int terminal_ = -1;
  pid_t child_ = 0;
  std::string screen_;
};

// Runs the program to its end, with `input` on a pipe.
inline Ran RunProgram(const TempFolder& home, std::vector<std::string> arguments, const std::string& input = "") {
  const std::string in = home.Write(".stdin", input), out = home / ".stdout", err = home / ".stderr";
  const pid_t child = ::fork();
  SLUICE_CHECK(child >= 0);
  if (child == 0) {
    if (std::freopen(in.c_str(), "r", stdin) == nullptr || std::freopen(out.c_str(), "w", stdout) == nullptr ||
        std::freopen(err.c_str(), "w", stderr) == nullptr)
      ::_exit(126);
    AtTerminal::Execute(home.path(), std::move(arguments));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const auto contents = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
}

}  // namespace sluice::app::testing
