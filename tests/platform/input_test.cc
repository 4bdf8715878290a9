#include "platform/input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "base/check.h"
#include "platform/file.h"
#include "platform/interrupt.h"

namespace sluice::platform {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    SLUICE_CHECK(::pipe(ends) == 0);
    out = UniqueFd(ends[0]);
    in = UniqueFd(ends[1]);
  }
  void Write(std::string_view text) {
    SLUICE_CHECK(::write(in.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  UniqueFd in, out;
};

TEST(Input, TakesWhatIsThereAndSeesTheEnd) {
  const std::atomic<bool> never = false;
  Pipe pipe;
  pipe.Write("one");
  std::string bytes = "zero ";
  EXPECT_TRUE(*ReadAvailable(pipe.out.get(), never, &bytes));
  EXPECT_EQ(bytes, "zero one");
  pipe.Write(" two");
  pipe.in = UniqueFd();
  EXPECT_EQ(*ReadToEnd(pipe.out.get(), never, 100), " two");
  EXPECT_FALSE(*ReadAvailable(pipe.out.get(), never, &bytes));
  EXPECT_EQ(bytes, "zero one");
}

TEST(Input, MoreThanAllowedIsAnError) {
  const std::atomic<bool> never = false;
  Pipe pipe;
  pipe.Write("12345");
  const auto bytes = ReadToEnd(pipe.out.get(), never, 4);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kResourceExhausted);
}

TEST(Input, ClosedInputHasEnded) {
  const std::atomic<bool> never = false;
  Pipe pipe;
  const int closed = pipe.out.get();
  pipe.out = UniqueFd();
  EXPECT_EQ(*ReadToEnd(closed, never, 100), "");
}

TEST(Input, AFolderIsNoInput) {
  const std::atomic<bool> never = false;
  const UniqueFd folder(::open("/", O_RDONLY));
  const auto bytes = ReadToEnd(folder.get(), never, 100);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kIo);
}

// The pipe stays open and silent: only the signal ends the wait.
TEST(Input, CtrlCEndsTheWait) {
  InterruptFlag flag;
  Pipe pipe;
  const pthread_t reader = ::pthread_self();
  std::thread signaller([&] { ::pthread_kill(reader, SIGINT); });
  const auto bytes = ReadToEnd(pipe.out.get(), flag.flag(), 100);
  signaller.join();
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kInterrupted);
}

}  // namespace
}  // namespace sluice::platform
