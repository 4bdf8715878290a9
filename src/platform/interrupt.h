// Ctrl-C as a flag to look at. Apps install it; the library only ever sees the flag's address.
#pragma once

#include <signal.h>

#include <atomic>

namespace sluice::platform {

// While one of these lives, the first SIGINT or SIGTERM sets the flag; a second one, with the flag still set,
// ends the process as usual, so that a program that is stuck can be left. At most one at a time
// (SLUICE_CHECK), made and destroyed on the main thread; the flag may be read and reset from any thread.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;

  bool IsSet() const { return flag().load(std::memory_order_relaxed); }
  // Ready for the next Ctrl-C: chat stops one answer and goes on.
  void Reset();
  // For code that polls without knowing about signals.
  const std::atomic<bool>& flag() const;

 private:
  struct sigaction saved_[2];  // what SIGINT and SIGTERM did before
};

// Keeps SIGINT, SIGTERM, SIGHUP and SIGWINCH away from the calling thread, so that they interrupt the main
// thread's system calls and not a worker.
void LeaveSignalsToOtherThreads();

}  // namespace sluice::platform
