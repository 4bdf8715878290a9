// Both kinds of queue: every read comes back once, with the bytes of the file, whatever the order.
#include "io/io_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <thread>
#include <vector>

#include "platform/temp_folder.h"

namespace sluice::io {
namespace {

class IoQueueTest : public testing::TestWithParam<IoBackend> {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < contents_.size(); ++i) contents_[i] = static_cast<char>(i * 31 + i / 997);
    auto file = platform::File::Open(folder_.Write("data", contents_));
    ASSERT_TRUE(file) << file.error().message;
    file_ = std::make_unique<platform::File>(*std::move(file));
    auto queue = CreateIoQueue(GetParam(), kDepth);
    if (!queue && GetParam() == IoBackend::kUring) GTEST_SKIP() << queue.error().message;
    ASSERT_TRUE(queue) << queue.error().message;
    queue_ = *std::move(queue);
  }

  static constexpr int kDepth = 4;
  static constexpr size_t kRead = 5000;
  TempFolder folder_;
  std::string contents_ = std::string(200'000, '\0');
  std::unique_ptr<platform::File> file_;
  std::unique_ptr<IoQueue> queue_;
};

TEST_P(IoQueueTest, EveryReadComesBackWithItsBytes) {
  std::vector<std::vector<std::byte>> buffers(40, std::vector<std::byte>(kRead));
  std::set<uint64_t> seen;
  int under_way = 0;
  const auto collect = [&] {
    const IoCompletion done = queue_->Wait();
    --under_way;
    EXPECT_EQ(done.result, static_cast<int64_t>(kRead));
    EXPECT_TRUE(seen.insert(done.tag).second);
    const char* bytes = reinterpret_cast<const char*>(buffers[done.tag].data());
    EXPECT_TRUE(std::equal(bytes, bytes + kRead, contents_.data() + done.tag * 4000));
  };
  for (uint64_t tag = 0; tag < buffers.size(); ++tag) {
    if (under_way == kDepth) collect();
    queue_->Submit({file_.get(), tag * 4000, buffers[tag], tag});
    ++under_way;
  }
  while (under_way > 0) collect();
  EXPECT_EQ(seen.size(), buffers.size());
}

TEST_P(IoQueueTest, TheEndOfTheFileGivesFewerBytesAndThenNone) {
  std::vector<std::byte> buffer(kRead);
  queue_->Submit({file_.get(), contents_.size() - 100, buffer, 1});
  EXPECT_EQ(queue_->Wait().result, 100);
  queue_->Submit({file_.get(), contents_.size(), buffer, 2});
  EXPECT_EQ(queue_->Wait().result, 0);
}

TEST_P(IoQueueTest, AFailureIsTheErrorNumber) {
  queue_->Submit({file_.get(), 0, {reinterpret_cast<std::byte*>(uintptr_t{8}), 4096}, 1});  // no memory is there
  EXPECT_EQ(queue_->Wait().result, -EFAULT);
}

TEST_P(IoQueueTest, PollGivesWhatHasArrivedAndNothingElse) {
  EXPECT_FALSE(queue_->Poll());
  std::vector<std::byte> buffer(kRead);
  queue_->Submit({file_.get(), 0, buffer, 7});
  std::optional<IoCompletion> done;
  while (!(done = queue_->Poll())) std::this_thread::yield();
  EXPECT_EQ(done->tag, 7u);
  EXPECT_EQ(done->result, static_cast<int64_t>(kRead));
  EXPECT_FALSE(queue_->Poll());
}

TEST_P(IoQueueTest, OneThreadSubmitsWhileAnotherWaits) {
  std::vector<std::vector<std::byte>> buffers(400, std::vector<std::byte>(kRead));
  std::atomic<int> under_way{0}, submitted{0};
  std::thread waiter([&] {
    for (size_t done = 0; done < buffers.size(); ++done) {
      while (submitted.load() <= static_cast<int>(done)) std::this_thread::yield();
      EXPECT_EQ(queue_->Wait().result, static_cast<int64_t>(kRead));
      --under_way;
    }
  });
  for (uint64_t tag = 0; tag < buffers.size(); ++tag) {
    while (under_way.load() >= kDepth) std::this_thread::yield();
    ++under_way;
    queue_->Submit({file_.get(), tag * 400, buffers[tag], tag});
    ++submitted;
  }
  waiter.join();
}

TEST_P(IoQueueTest, ReadsThatNobodyWaitedForAreOverWhenTheQueueIsGone) {
  std::vector<std::byte> buffer(kRead);
  for (uint64_t tag = 0; tag < kDepth; ++tag) queue_->Submit({file_.get(), 0, buffer, tag});
  queue_.reset();
  std::fill(buffer.begin(), buffer.end(), std::byte{0});  // nobody writes here any more
  EXPECT_EQ(buffer[1], std::byte{0});
}

INSTANTIATE_TEST_SUITE_P(Backends, IoQueueTest, testing::Values(IoBackend::kUring, IoBackend::kPread),
                         [](const auto& test) { return test.param == IoBackend::kUring ? "uring" : "pread"; });

}  // namespace
}  // namespace sluice::io
