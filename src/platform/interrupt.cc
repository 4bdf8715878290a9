#include "platform/interrupt.h"

#include <signal.h>

#include "base/check.h"

namespace sluice::platform {
namespace {

// A signal handler can reach nothing but a global: the one exception to "no mutable globals", owned by the
// one living InterruptFlag.
std::atomic<bool> interrupted{false};
std::atomic<bool> installed{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch only lock-free atomics");

constexpr int kSignals[] = {SIGINT, SIGTERM};

void OnSignal(int signal_number) {
  if (!interrupted.exchange(true, std::memory_order_relaxed)) return;
  // Asked twice: end as if there were no handler. The signal is blocked while we are in it and
  // arrives on return.
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

}  // namespace

InterruptFlag::InterruptFlag() {
  SLUICE_CHECK(!installed.exchange(true));
  Reset();
  struct sigaction action = {};
  action.sa_handler = OnSignal;  // no SA_RESTART: a read of the terminal returns EINTR and can be given up
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &action, &saved_[i]);
}

InterruptFlag::~InterruptFlag() {
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &saved_[i], nullptr);
  installed.store(false);
}

void InterruptFlag::Reset() { interrupted.store(false, std::memory_order_relaxed); }

const std::atomic<bool>& InterruptFlag::flag() const { return interrupted; }

void LeaveSignalsToOtherThreads() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&set, signal_number);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace sluice::platform
