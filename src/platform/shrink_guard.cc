#include "platform/shrink_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/units.h"

namespace sluice::platform {
namespace {

// A signal handler can reach nothing but globals: an exception to "no mutable globals", owned by the guards
// that live.
struct Slot {
  std::atomic<uintptr_t> begin{0};  // 0: free
  std::atomic<size_t> size{0};
  std::atomic<bool> page_was_missing{false};
};
std::array<Slot, ShrinkGuard::kMost> slots;
std::mutex slots_mutex;        // held while slots are taken and given back; the handler goes without
size_t guards = 0;             // that live, under slots_mutex
bool installed = false;        // under slots_mutex
struct sigaction before = {};  // what SIGBUS did; constant while the handler is installed
std::atomic<uintptr_t> page_bytes{0};
static_assert(std::atomic<uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler may touch only lock-free atomics");

// Zeros from the page of `address` to the end of its mapping. False when no guard watches over it.
bool PutZerosAt(uintptr_t address) {
  const uintptr_t page = page_bytes.load(std::memory_order_relaxed);
  for (Slot& slot : slots) {
    const uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    const size_t size = slot.size.load(std::memory_order_relaxed);
    if (begin == 0 || address < begin || address - begin >= size) continue;
    const uintptr_t first = address / page * page;
    slot.page_was_missing.store(true, std::memory_order_release);
    return ::mmap(reinterpret_cast<void*>(first), begin + size - first, PROT_READ,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
  }
  return false;
}

void OnBusError(int signal_number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool handled = info->si_code == BUS_ADRERR && PutZerosAt(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = saved_errno;
  if (handled) return;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal_number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal_number);
  } else if (info->si_code > 0) {
    // The access is repeated on return, as if there were no handler. Nobody can ignore it.
    ::signal(signal_number, SIG_DFL);
  } else if (before.sa_handler == SIG_DFL) {
    // Somebody sent it.
    ::signal(signal_number, SIG_DFL);
    ::raise(signal_number);
  }
}

void Install() {
  if (std::exchange(installed, true)) return;
  page_bytes.store(static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), std::memory_order_relaxed);
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGBUS, nullptr, &before);
  ::sigaction(SIGBUS, &action, nullptr);
}

// Unless somebody has put another handler over ours since, which may call it.
void Uninstall() {
  struct sigaction now = {};
  ::sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != OnBusError) return;
  ::sigaction(SIGBUS, &before, nullptr);
  installed = false;
}

}  // namespace

Result<ShrinkGuard> ShrinkGuard::Watch(std::span<const std::byte> mapping) {
  SLUICE_CHECK(!mapping.empty());
  const std::lock_guard lock(slots_mutex);
  for (size_t i = 0; i < kMost; ++i) {
    Slot& slot = slots[i];
    if (slot.begin.load(std::memory_order_relaxed) != 0) continue;
    if (guards++ == 0) Install();
    slot.page_was_missing.store(false, std::memory_order_relaxed);
    slot.size.store(mapping.size(), std::memory_order_relaxed);
    slot.begin.store(reinterpret_cast<uintptr_t>(mapping.data()), std::memory_order_release);
    return ShrinkGuard(static_cast<int>(i));
  }
  return Fail(ErrorCode::kResourceExhausted, "mapping a file: {} files are mapped already", kMost);
}

ShrinkGuard::~ShrinkGuard() {
  if (slot_ < 0) return;
  const std::lock_guard lock(slots_mutex);
  slots[static_cast<size_t>(slot_)].begin.store(0, std::memory_order_relaxed);
  if (--guards == 0) Uninstall();
}

bool ShrinkGuard::page_was_missing() const {
  return slot_ >= 0 && slots[static_cast<size_t>(slot_)].page_was_missing.load(std::memory_order_acquire);
}

}  // namespace sluice::platform
