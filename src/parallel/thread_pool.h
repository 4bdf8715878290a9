// ThreadPool: fork and join over a fixed set of workers. The thread that calls is worker 0; the pool
// owns the other size() − 1. All of them run under ScopedFpEnv while they work; the caller's own
// environment is restored.
//
// Made for thousands of calls per token: a call allocates nothing and costs about a microsecond while the
// helpers are hot. Helpers wait by spinning briefly, then sleep; an idle pool costs no CPU time.
//
// A pool is used by one thread at a time, and calls don't nest: a second call while one is under way is a bug
// (SLUICE_CHECK). The functions passed in must not throw, and must not wait for one another
// (but see ParallelForInOrder).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "platform/affinity.h"

namespace sluice::parallel {

class ThreadPool {
 public:
  static constexpr int kMaxThreads = 1024;

  struct Options {
    int threads = 1;  // workers, the caller included; brought into 1 … kMaxThreads
    // Helpers are kept on this set of cores, as far as the kernel allows; empty = anywhere. The caller's
    // thread is its owner's business: see KeepCallerOnCores.
    std::vector<int> cores;
    // How long a waiting worker spins before it sleeps. With more workers than cores to run on, none spins.
    std::chrono::microseconds spin{50};
  };

  // Starts the helpers. Where the system refuses a thread the pool is smaller: see size().
  explicit ThreadPool(Options options);
  explicit ThreadPool(int threads) : ThreadPool(Options{.threads = threads, .cores = {}}) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }
  // Keeps the calling thread on the helpers' cores, too, for as long as what comes back lives.
  platform::ScopedCores KeepCallerOnCores() const { return platform::ScopedCores(cores_); }
  // Workers that have nothing to do in the call under way, or have not come to it yet: for statistics, at this
  // moment. For a worker that is in it, so at most size() − 1.
  int idle_workers() const;

  // Calls fn(worker) once on every worker, worker = 0 … size() − 1; returns when all have returned.
  template <typename F>
  void Run(F&& fn) {
    using Fn = std::remove_reference_t<F>;
    Execute({.call = [](void* f, int64_t, int64_t, int worker) { (*static_cast<Fn*>(f))(worker); },
             .context = Erase(fn),
             .every_worker = true});
  }

  // Calls fn(begin, end, worker) for consecutive ranges that cover [0, items), each `grain` long (the last
  // may be shorter), so every begin is a multiple of grain. Each worker begins with a stretch of its own and walks through it in
  // order; one that is done helps the others from their far ends. So a slow or descheduled core holds up at most
  // the one range that it has, and a worker that has not woken when all ranges are taken is not waited for.
  // Returns when all ranges are done. grain ≥ 1.
  template <typename F>
  void ParallelFor(int64_t items, int64_t grain, F&& fn) {
    using Fn = std::remove_reference_t<F>;
    Execute({.call = [](void* f, int64_t begin, int64_t end,
                        int worker) { (*static_cast<Fn*>(f))(begin, end, worker); },
             .context = Erase(fn),
             .items = items,
             .grain = grain});
  }

  // The same, with ranges handed out strictly in order: for work that arrives in that order. A function may here wait
  // for what a range before its own will have done.
  template <typename F>
  void ParallelForInOrder(int64_t items, int64_t grain, F&& fn) {
    using Fn = std::remove_reference_t<F>;
    Execute({.call = [](void* f, int64_t begin, int64_t end,
                        int worker) { (*static_cast<Fn*>(f))(begin, end, worker); },
             .context = Erase(fn),
             .items = items,
             .grain = grain,
             .in_order = true});
  }

 private:
  struct Job {
    void (*call)(void* context, int64_t begin, int64_t end, int worker) = nullptr;  // null: helpers leave
    void* context = nullptr;
    int64_t items = 0;
    int64_t grain = 1;
    bool every_worker = false;
    bool in_order = false;
  };

  template <typename F>
  static void* Erase(F& fn) {
    return const_cast<void*>(static_cast<const void*>(&fn));
  }

  void Execute(const Job& job);
  void Work(int worker);
  bool Take(int worker, int owner, int64_t* range);
  void Open();
  void Close();
  bool Enter(uint64_t* last_job);
  void Leave();
  void HelperMain(int worker);
  template <typename Condition>
  bool SpinUntil(Condition condition) const;

  // The gate through which helpers enter a job: [job number | open | finished helpers | entered helpers]. One
  // word, so that "nobody can enter any more" and "who is still inside" are read and changed together.
  alignas(64) std::atomic<uint64_t> gate_{0};
  // The ranges of ParallelFor that each worker has left, [end | begin] in one word: it takes its own from the front,
  // and others take from its back. Each worker so walks through one stretch of the items, which memory likes.
  struct alignas(64) Share {
    std::atomic<uint64_t> left{0};
  };
  std::vector<Share> shares_;
  // Written by the caller while the gate is shut and nobody is inside; read by helpers that have entered.
  alignas(64) Job job_;

  std::atomic<bool> busy_{false};
  std::chrono::microseconds spin_;
  std::vector<int> cores_;

  // Sleeping. The counters are changed under mutex_ and read without it (see Open).
  std::mutex mutex_;
  std::condition_variable job_opened_;
  std::condition_variable helper_finished_;
  std::atomic<int> sleeping_helpers_{0};
  std::atomic<bool> caller_sleeps_{false};

  std::vector<std::thread> helpers_;
};

}  // namespace sluice::parallel
