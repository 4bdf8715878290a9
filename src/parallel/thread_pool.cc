#include "parallel/thread_pool.h"

#include <algorithm>
#include <system_error>

#include "base/check.h"
#include "platform/affinity.h"
#include "platform/cpu_relax.h"
#include "platform/fp_env.h"
#include "platform/interrupt.h"

namespace sluice::parallel {
namespace {

// The fields of the gate word.
constexpr int kFinishedShift = 12;
constexpr int kOpenShift = 24;
constexpr int kJobShift = 25;
constexpr uint64_t kCountMask = (1u << kFinishedShift) - 1;
constexpr uint64_t kOneEntered = 1;
constexpr uint64_t kOneFinished = uint64_t{1} << kFinishedShift;
constexpr uint64_t kOpen = uint64_t{1} << kOpenShift;

constexpr uint64_t Entered(uint64_t gate) { return gate & kCountMask; }
constexpr uint64_t Finished(uint64_t gate) { return gate >> kFinishedShift & kCountMask; }
constexpr uint64_t JobNumber(uint64_t gate) { return gate >> kJobShift; }

// The word of a share: ranges [begin, end) that are left.
constexpr uint64_t MakeShare(uint64_t begin, uint64_t end) { return end << 32 | begin; }
constexpr uint64_t ShareBegin(uint64_t share) { return share & UINT32_MAX; }
constexpr uint64_t ShareEnd(uint64_t share) { return share >> 32; }

static_assert(ThreadPool::kMaxThreads <= static_cast<int>(kCountMask));

}  // namespace

ThreadPool::ThreadPool(Options options) : spin_(options.spin), cores_(std::move(options.cores)) {
  const int threads = std::clamp(options.threads, 1, kMaxThreads);
  // A spinning worker would keep the core from the one that it waits for.
  const size_t allowed = platform::CurrentThreadCores().size();
  const size_t cores = cores_.empty() ? allowed : std::min(allowed, cores_.size());
  if (cores != 0 && static_cast<size_t>(threads) > cores) spin_ = std::chrono::microseconds(0);

  helpers_.reserve(static_cast<size_t>(threads - 1));
  try {
    for (int worker = 1; worker < threads; ++worker) {
      helpers_.emplace_back([this, worker] { HelperMain(worker); });
    }
  } catch (const std::system_error&) {
    // The thread limit is reached: work with those that have started.
  }
  shares_ = std::vector<Share>(helpers_.size() + 1);
}

ThreadPool::~ThreadPool() {
  job_ = Job{};
  Open();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::Execute(const Job& job) {
  SLUICE_CHECK(!busy_.exchange(true, std::memory_order_acquire));
  SLUICE_CHECK(job.grain >= 1);
  const platform::ScopedFpEnv fp_env;
  job_ = job;
  const uint64_t ranges = static_cast<uint64_t>((job.items + job.grain - 1) / job.grain);
  SLUICE_CHECK(ranges <= UINT32_MAX);
  // In order: all ranges are in one share, of which everybody takes the first.
  const uint64_t workers = job.in_order ? 1 : shares_.size();
  for (uint64_t w = 0; w < workers; ++w) {
    shares_[w].left.store(MakeShare(ranges * w / workers, ranges * (w + 1) / workers), std::memory_order_relaxed);
  }
  if (helpers_.empty() || (!job.every_worker && job.items <= job.grain)) {
    Work(0);
  } else {
    Open();
    Work(0);
    Close();
  }
  busy_.store(false, std::memory_order_release);
}

void ThreadPool::Work(int worker) {
  if (job_.every_worker) {
    job_.call(job_.context, worker, worker + 1, worker);
    return;
  }
  const auto do_range = [&](int64_t range) {
    const int64_t begin = range * job_.grain;
    job_.call(job_.context, begin, begin + std::min(job_.grain, job_.items - begin), worker);
  };
  int64_t range;
  if (job_.in_order) {
    while (Take(0, 0, &range)) do_range(range);
    return;
  }
  for (int offset = 0; offset < size(); ++offset) {
    while (Take(worker, (worker + offset) % size(), &range)) do_range(range);
  }
}

// Takes one range of `owner`'s share: the first that is left for the owner, the last for anybody else.
bool ThreadPool::Take(int worker, int owner, int64_t* range) {
  std::atomic<uint64_t>& left = shares_[static_cast<size_t>(owner)].left;
  uint64_t share = left.load(std::memory_order_relaxed);
  while (ShareBegin(share) < ShareEnd(share)) {
    const bool own = worker == owner;
    const uint64_t rest = own ? MakeShare(ShareBegin(share) + 1, ShareEnd(share))
                              : MakeShare(ShareBegin(share), ShareEnd(share) - 1);
    if (left.compare_exchange_weak(share, rest, std::memory_order_relaxed)) {
      *range = static_cast<int64_t>(own ? ShareBegin(share) : ShareEnd(share) - 1);
      return true;
    }
  }
  return false;
}

// Sequentially consistent, here and where helpers fall asleep: either the helper, having counted itself as
// asleep, sees the open gate, or we see that it sleeps. The same holds for Close against Leave.
void ThreadPool::Open() {
  gate_.store(((JobNumber(gate_.load(std::memory_order_relaxed)) + 1) << kJobShift) | kOpen);
  if (sleeping_helpers_.load() == 0) return;
  // Under the mutex a helper is either waiting already or will look at the gate again before it does.
  { const std::lock_guard lock(mutex_); }
  job_opened_.notify_all();
}

void ThreadPool::Close() {
  // Run waits for every helper. ParallelFor shuts out those that have not come yet: nothing is left to do.
  if (!job_.every_worker) gate_.fetch_and(~kOpen);
  const uint64_t expected = helpers_.size();
  const auto done = [&] {
    const uint64_t gate = gate_.load();
    return Finished(gate) == (job_.every_worker ? expected : Entered(gate));
  };
  if (!SpinUntil(done)) {
    std::unique_lock lock(mutex_);
    caller_sleeps_.store(true);
    helper_finished_.wait(lock, done);
    caller_sleeps_.store(false);
  }
  if (job_.every_worker) gate_.fetch_and(~kOpen);
}

int ThreadPool::idle_workers() const {
  const uint64_t gate = gate_.load(std::memory_order_relaxed);
  // Once the gate is shut, the caller has nothing left and waits for the helpers.
  const uint64_t busy = Entered(gate) - Finished(gate) + ((gate & kOpen) != 0 ? 1 : 0);
  return std::clamp(size() - static_cast<int>(busy), 0, size() - 1);
}

// Enters the open job, unless it is the one that this helper was in last.
bool ThreadPool::Enter(uint64_t* last_job) {
  uint64_t gate = gate_.load();
  while ((gate & kOpen) != 0 && JobNumber(gate) != *last_job) {
    if (gate_.compare_exchange_weak(gate, gate + kOneEntered)) {
      *last_job = JobNumber(gate);
      return true;
    }
  }
  return false;
}

void ThreadPool::Leave() {
  gate_.fetch_add(kOneFinished);
  if (!caller_sleeps_.load()) return;
  { const std::lock_guard lock(mutex_); }
  helper_finished_.notify_one();
}

void ThreadPool::HelperMain(int worker) {
  platform::LeaveSignalsToOtherThreads();
  // Best effort: on other cores the work is slower, not wrong.
  if (!cores_.empty()) static_cast<void>(platform::PinCurrentThread(cores_));
  const platform::ScopedFpEnv fp_env;
  uint64_t last_job = 0;
  const auto enter = [&] { return Enter(&last_job); };
  for (;;) {
    if (!SpinUntil(enter)) {
      std::unique_lock lock(mutex_);
      sleeping_helpers_.fetch_add(1);
      job_opened_.wait(lock, enter);
      sleeping_helpers_.fetch_sub(1);
    }
    if (job_.call == nullptr) return;
    Work(worker);
    Leave();
  }
}

// True as soon as condition() is; false when spin_ has passed. After the first eighth it offers the core to
// others between looks: on a busy machine the worker that we wait for may need it.
template <typename Condition>
bool ThreadPool::SpinUntil(Condition condition) const {
  constexpr int kLooksPerClockReading = 16;
  if (spin_.count() == 0) return condition();
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    for (int look = 0; look < kLooksPerClockReading; ++look) {
      if (condition()) return true;
      platform::CpuRelax();
    }
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited >= spin_) return false;
    if (waited >= spin_ / 8) std::this_thread::yield();
  }
}

}  // namespace sluice::parallel
