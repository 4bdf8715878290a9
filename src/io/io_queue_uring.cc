#include <liburing.h>

#include <atomic>
#include <cerrno>

#include "base/check.h"
#include "io/io_queue.h"
#include "platform/os_error.h"

namespace sluice::io {
namespace {

// The submission side is touched by Submit alone and the completion side by Wait alone, so the two need no lock.
class UringQueue final : public IoQueue {
 public:
  ~UringQueue() override {
    // The kernel may still write into the buffers of reads that nobody waited for.
    for (; under_way_ > 0; --under_way_) Reap();
    io_uring_queue_exit(&ring_);
  }

  static Result<std::unique_ptr<IoQueue>> Create(int depth) {
    io_uring ring;
    const int error = -io_uring_queue_init(static_cast<unsigned>(depth), &ring, 0);
    if (error != 0) return Error{ErrorCode::kUnsupported, platform::OsError(error, "opening an io_uring").message};
    return std::unique_ptr<IoQueue>(new UringQueue(ring));
  }

  std::string_view name() const override { return "io_uring"; }

  void Submit(const IoRead& read) override {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    SLUICE_CHECK(entry != nullptr);
    io_uring_prep_read(entry, read.file->fd(), read.buffer.data(), static_cast<unsigned>(read.buffer.size()), read.offset);
    io_uring_sqe_set_data64(entry, read.tag);
    int submitted;
    do submitted = io_uring_submit(&ring_);
    while (submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY);
    SLUICE_CHECK(submitted == 1);
    under_way_.fetch_add(1, std::memory_order_relaxed);
  }

  IoCompletion Wait() override {
    const IoCompletion completion = Reap();
    under_way_.fetch_sub(1, std::memory_order_relaxed);
    return completion;
  }

  std::optional<IoCompletion> Poll() override {
    if (io_uring_cq_ready(&ring_) == 0) return std::nullopt;
    return Wait();
  }

 private:
  explicit UringQueue(const io_uring& ring) : ring_(ring) {}

  IoCompletion Reap() {
    io_uring_cqe* entry = nullptr;
    int error;
    do error = io_uring_wait_cqe(&ring_, &entry);
    while (error == -EINTR || error == -EAGAIN);
    SLUICE_CHECK(error == 0);
    const IoCompletion completion{entry->user_data, entry->res};
    io_uring_cqe_seen(&ring_, entry);
    return completion;
  }

  io_uring ring_;
  std::atomic<int> under_way_{0};
};

}  // namespace

Result<std::unique_ptr<IoQueue>> CreateUringQueue(int depth) { return UringQueue::Create(depth); }

}  // namespace sluice::io
