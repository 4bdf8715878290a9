#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "io/io_queue.h"
#include "platform/interrupt.h"

namespace sluice::io {
namespace {

// Storage rarely gains from more, and each is a thread that only waits.
constexpr int kMaxThreads = 4;

class PreadQueue final : public IoQueue {
 public:
  explicit PreadQueue(int depth) : reads_(static_cast<size_t>(depth)), completions_(static_cast<size_t>(depth)) {}

  ~PreadQueue() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    has_read_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Status Start(int threads) {
    try {
      for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error& error) {
      if (threads_.empty()) return Fail(ErrorCode::kResourceExhausted, "starting a thread for reading: {}", error.what());
    }
    return {};
  }

  std::string_view name() const override { return "pread"; }

  void Submit(const IoRead& read) override {
    {
      const std::lock_guard lock(mutex_);
      reads_.Push(read);
    }
    has_read_.notify_one();
  }

  IoCompletion Wait() override {
    std::unique_lock lock(mutex_);
    has_completion_.wait(lock, [&] { return !completions_.empty(); });
    return completions_.Pop();
  }

  std::optional<IoCompletion> Poll() override {
    const std::lock_guard lock(mutex_);
    if (completions_.empty()) return std::nullopt;
    return completions_.Pop();
  }

 private:
  // First in, first out, of a capacity known beforehand: nothing is allocated while reading.
  template <typename T>
  class Ring {
   public:
    explicit Ring(size_t capacity) : items_(capacity) {}
    bool empty() const { return size_ == 0; }
    void Push(const T& item) { items_[(begin_ + size_++) % items_.size()] = item; }
    T Pop() {
      const T item = items_[begin_];
      begin_ = (begin_ + 1) % items_.size();
      --size_;
      return item;
    }

   private:
    std::vector<T> items_;
    size_t begin_ = 0, size_ = 0;
  };

  void Work() {
    platform::LeaveSignalsToOtherThreads();
    std::unique_lock lock(mutex_);
    for (;;) {
      has_read_.wait(lock, [&] { return closing_ || !reads_.empty(); });
      if (closing_) return;
      const IoRead read = reads_.Pop();
      lock.unlock();
      const int64_t result = read.file->PreadOnce(read.offset, read.buffer);
      lock.lock();
      completions_.Push({read.tag, result});
      has_completion_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable has_read_, has_completion_;
  Ring<IoRead> reads_;
  Ring<IoCompletion> completions_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<IoQueue>> CreatePreadQueue(int depth) {
  auto queue = std::make_unique<PreadQueue>(depth);
  SLUICE_TRY(queue->Start(std::min(depth, kMaxThreads)));
  return std::unique_ptr<IoQueue>(std::move(queue));
}

}  // namespace sluice::io
