#include "platform/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "platform/file.h"

namespace sluice::platform {
namespace {

// A terminal without a person: what is written to `person` arrives at `program` as if typed.
class TerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    person_ = UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY));
    if (!person_ || ::grantpt(person_.get()) != 0 || ::unlockpt(person_.get()) != 0) {
      GTEST_SKIP() << "no pseudo-terminals here";
    }
    program_ = UniqueFd(::open(::ptsname(person_.get()), O_RDWR | O_NOCTTY));
    ASSERT_TRUE(program_);
  }
  termios Settings() {
    termios settings = {};
    ::tcgetattr(program_.get(), &settings);
    return settings;
  }
  UniqueFd person_, program_;
};

TEST_F(TerminalTest, IsRecognised) {
  EXPECT_TRUE(IsTerminal(program_.get()));
  const UniqueFd null(::open("/dev/null", O_RDWR));
  EXPECT_FALSE(IsTerminal(null.get()));
  EXPECT_FALSE(IsTerminal(-1));
}

TEST_F(TerminalTest, Width) {
  winsize size = {};
  size.ws_col = 132;
  ASSERT_EQ(::ioctl(person_.get(), TIOCSWINSZ, &size), 0);
  EXPECT_EQ(TerminalWidth(program_.get()), 132);
  size.ws_col = 0;
  ASSERT_EQ(::ioctl(person_.get(), TIOCSWINSZ, &size), 0);
  EXPECT_EQ(TerminalWidth(program_.get()), 80);
  EXPECT_EQ(TerminalWidth(-1), 80);
}

TEST_F(TerminalTest, RawModeDeliversKeysAndIsUndone) {
  const termios before = Settings();
  ASSERT_NE(before.c_lflag & ICANON, 0u);
  {
    auto raw = RawMode::Enter(program_.get());
    ASSERT_TRUE(raw) << raw.error().message;
    const RawMode moved = *std::move(raw);
    ASSERT_EQ(::write(person_.get(), "a\x03", 2), 2);  // no end of line, and a Ctrl-C
    char keys[2] = {};
    ASSERT_EQ(::read(program_.get(), &keys[0], 1), 1);
    ASSERT_EQ(::read(program_.get(), &keys[1], 1), 1);
    EXPECT_EQ(keys[0], 'a');
    EXPECT_EQ(keys[1], '\x03');
    EXPECT_EQ(Settings().c_lflag & (ICANON | ECHO), 0u);
  }
  EXPECT_EQ(Settings().c_lflag, before.c_lflag);
  EXPECT_EQ(Settings().c_iflag, before.c_iflag);
}

TEST_F(TerminalTest, RawModeNeedsATerminal) {
  const UniqueFd null(::open("/dev/null", O_RDWR));
  EXPECT_EQ(RawMode::Enter(null.get()).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace sluice::platform
