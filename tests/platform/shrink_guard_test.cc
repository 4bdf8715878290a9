#include "platform/shrink_guard.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "platform/mapping.h"
#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

constexpr size_t kBytes = 64 * 4096;

int ReadAll(std::span<const std::byte> bytes) {
  int sum = 0;
  for (const std::byte b : bytes) sum += std::to_integer<int>(b);
  return sum;
}

class ShrinkGuardTest : public testing::Test {
 protected:
  ShrinkGuardTest()
      : path_(folder_.Write("f", std::string(kBytes, 1))), mapping_(*Mapping::OfFile(*File::Open(path_))) {}

  TempFolder folder_;
  std::string path_;
  Mapping mapping_;
};

TEST_F(ShrinkGuardTest, PagesThatAreGoneAreZerosAndItSaysSo) {
  for (int round = 0; round < 2; ++round) {
    const auto guard = ShrinkGuard::Watch(mapping_.bytes());
    ASSERT_TRUE(guard) << guard.error().message;
    EXPECT_EQ(ReadAll(mapping_.bytes()), static_cast<int>(kBytes));
    EXPECT_FALSE(guard->page_was_missing());
    std::filesystem::resize_file(path_, kBytes / 4);
    EXPECT_EQ(ReadAll(mapping_.bytes()), static_cast<int>(kBytes / 4));
    EXPECT_TRUE(guard->page_was_missing());
    path_ = folder_.Write("again", std::string(kBytes, 1));
    mapping_ = *Mapping::OfFile(*File::Open(path_));
  }
}

TEST_F(ShrinkGuardTest, AGuardKnowsOnlyOfItsOwnMapping) {
  const std::string other_path = folder_.Write("other", std::string(kBytes, 1));
  const Mapping other = *Mapping::OfFile(*File::Open(other_path));
  auto guard = *ShrinkGuard::Watch(mapping_.bytes());
  const auto other_guard = *ShrinkGuard::Watch(other.bytes());
  std::filesystem::resize_file(other_path, 0);
  EXPECT_EQ(ReadAll(other.bytes()), 0);
  EXPECT_TRUE(other_guard.page_was_missing());
  EXPECT_FALSE(guard.page_was_missing());
  const ShrinkGuard moved = std::move(guard);
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(ReadAll(mapping_.bytes()), 0);
  EXPECT_TRUE(moved.page_was_missing());
}

TEST_F(ShrinkGuardTest, WithoutAGuardTheProcessEndsAsItWould) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "the sanitizer ends the process itself";
#endif
  const std::string other_path = folder_.Write("other", std::string(kBytes, 1));
  const Mapping other = *Mapping::OfFile(*File::Open(other_path));
  const auto guard = *ShrinkGuard::Watch(other.bytes());
  std::filesystem::resize_file(path_, 0);
  EXPECT_EXIT(std::exit(ReadAll(mapping_.bytes())), testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(::raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}

volatile sig_atomic_t caught = 0;

TEST_F(ShrinkGuardTest, OtherSignalsGoToWhoeverHadThemAndHasThemBackLater) {
  struct sigaction mine = {}, before = {}, now = {};
  mine.sa_handler = [](int) { caught = caught + 1; };
  ::sigaction(SIGBUS, &mine, &before);
  {
    const auto guard = *ShrinkGuard::Watch(mapping_.bytes());
    ::raise(SIGBUS);
    EXPECT_EQ(caught, 1);
    std::filesystem::resize_file(path_, 0);
    EXPECT_EQ(ReadAll(mapping_.bytes()), 0);
    EXPECT_EQ(caught, 1);
  }
  ::sigaction(SIGBUS, &before, &now);
  EXPECT_EQ(now.sa_handler, mine.sa_handler);
}

}  // namespace
}  // namespace sluice::platform
