#include "platform/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace sluice::platform {
namespace {

using testing::ElementsAre;

TEST(AffinityTest, PinsTheCallingThreadOnly) {
  const std::vector<int> before = CurrentThreadCores();
  ASSERT_FALSE(before.empty());
  std::thread([&] {
    const int last[] = {before.back()};
    const Status status = PinCurrentThread(last);
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_THAT(CurrentThreadCores(), ElementsAre(before.back()));
  }).join();
  EXPECT_EQ(CurrentThreadCores(), before);
}

TEST(AffinityTest, ScopedCoresGivesTheOthersBack) {
  const std::vector<int> before = CurrentThreadCores();
  {
    const int last[] = {before.back()};
    const ScopedCores keep(last);
    EXPECT_THAT(CurrentThreadCores(), ElementsAre(before.back()));
  }
  EXPECT_EQ(CurrentThreadCores(), before);
  const int absent[] = {1023};
  const ScopedCores refused(absent), anywhere({});
  EXPECT_EQ(CurrentThreadCores(), before);
}

TEST(AffinityTest, ImpossibleSetsAreErrors) {
  EXPECT_EQ(PinCurrentThread({}).error().code, ErrorCode::kInvalidArgument);
  for (const int id : {-1, 1 << 20}) {
    const int cores[] = {0, id};
    EXPECT_EQ(PinCurrentThread(cores).error().code, ErrorCode::kInvalidArgument);
  }
  const int absent[] = {1023};
  EXPECT_EQ(PinCurrentThread(absent).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace sluice::platform
