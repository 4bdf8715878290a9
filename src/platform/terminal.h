// The terminal a person sits at: whether there is one, how wide it is, and reading it key by key.
#pragma once

#include <termios.h>

#include <utility>

#include "base/result.h"

namespace sluice::platform {

bool IsTerminal(int fd);
// Columns; 80 when `fd` is no terminal or doesn't know.
int TerminalWidth(int fd);

// While it lives, what is typed arrives byte by byte, is not echoed, and Ctrl-C is byte 3 instead of a
// signal. Output is processed as before ("\n" starts a line). Restores the terminal when destroyed;
// move-only; one at a time for a terminal.
class RawMode {
 public:
  // Error: kIo when `fd` is no terminal.
  static Result<RawMode> Enter(int fd);
  RawMode(RawMode&& other) noexcept : fd_(std::exchange(other.fd_, -1)), saved_(other.saved_) {}
  RawMode& operator=(RawMode&&) = delete;
  ~RawMode();

 private:
  RawMode(int fd, const termios& saved) : fd_(fd), saved_(saved) {}

  int fd_;
  termios saved_;
};

}  // namespace sluice::platform
