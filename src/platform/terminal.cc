#include "platform/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "platform/os_error.h"

namespace sluice::platform {

bool IsTerminal(int fd) { return ::isatty(fd) == 1; }

int TerminalWidth(int fd) {
  winsize size = {};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

Result<RawMode> RawMode::Enter(int fd) {
  termios saved;
  if (::tcgetattr(fd, &saved) != 0) return OsError(errno, "reading the settings of the terminal");
  termios raw = saved;
  raw.c_iflag &= ~static_cast<tcflag_t>(ICRNL | IXON | ISTRIP | INLCR);
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  // TCSADRAIN keeps what was typed ahead.
  if (::tcsetattr(fd, TCSADRAIN, &raw) != 0) return OsError(errno, "changing the settings of the terminal");
  return RawMode(fd, saved);
}

RawMode::~RawMode() {
  if (fd_ >= 0) ::tcsetattr(fd_, TCSADRAIN, &saved_);
}

}  // namespace sluice::platform
