#include "platform/interrupt.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>

namespace sluice::platform {
namespace {

TEST(InterruptFlagTest, TheFirstSignalSetsTheFlag) {
  InterruptFlag flag;
  EXPECT_FALSE(flag.IsSet());
  for (const int signal_number : {SIGINT, SIGTERM}) {
    ::raise(signal_number);
    EXPECT_TRUE(flag.IsSet());
    EXPECT_TRUE(flag.flag().load());
    flag.Reset();
    EXPECT_FALSE(flag.IsSet());
  }
}

TEST(InterruptFlagTest, ASystemCallIsGivenUp) {
  InterruptFlag flag;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  // SIGALRM would need a handler of its own: let a thread send SIGINT to this one while it reads.
  const pthread_t reader = ::pthread_self();
  pthread_t sender;
  const auto send = [](void* target) -> void* {
    ::usleep(20000);
    ::pthread_kill(*static_cast<pthread_t*>(target), SIGINT);
    return nullptr;
  };
  pthread_t target = reader;
  ASSERT_EQ(::pthread_create(&sender, nullptr, send, &target), 0);
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), -1);
  EXPECT_EQ(errno, EINTR);
  EXPECT_TRUE(flag.IsSet());
  ::pthread_join(sender, nullptr);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(InterruptFlagDeathTest, TheSecondSignalEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        InterruptFlag flag;
        ::raise(SIGINT);
        ::raise(SIGINT);
        _exit(0);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(InterruptFlagTest, HandlersAreRestored) {
  struct sigaction before, after;
  ::sigaction(SIGINT, nullptr, &before);
  { InterruptFlag flag; }
  ::sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace sluice::platform
