#include "platform/input.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "base/units.h"
#include "platform/os_error.h"

namespace sluice::platform {

Result<bool> ReadAvailable(int fd, const std::atomic<bool>& interrupt, std::string* bytes) {
  // A signal between the look at the flag and the wait doesn't end the wait: hence no wait is long.
  constexpr int kWaitMs = 200;
  constexpr size_t kBlockBytes = 64 << 10;
  while (!interrupt.load(std::memory_order_relaxed)) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    const int count = ::poll(&ready, 1, kWaitMs);
    if (count == 0 || (count < 0 && errno == EINTR)) continue;
    if (count < 0) return OsError(errno, "waiting for input");
    if ((ready.revents & POLLNVAL) != 0) return false;
    const size_t before = bytes->size();
    bytes->resize(before + kBlockBytes);
    const ssize_t got = ::read(fd, bytes->data() + before, kBlockBytes);
    const int error = errno;
    bytes->resize(before + static_cast<size_t>(got > 0 ? got : 0));
    if (got > 0) return true;
    if (got == 0) return false;
    if (error != EINTR && error != EAGAIN) return OsError(error, "reading input");
  }
  return false;
}

Result<std::string> ReadToEnd(int fd, const std::atomic<bool>& interrupt, uint64_t max_bytes) {
  std::string bytes;
  for (;;) {
    SLUICE_TRY_ASSIGN(const bool more, ReadAvailable(fd, interrupt, &bytes));
    if (interrupt.load(std::memory_order_relaxed)) return Fail(ErrorCode::kInterrupted, "interrupted");
    if (bytes.size() > max_bytes) {
      return Fail(ErrorCode::kResourceExhausted, "the input is longer than {}", FormatBytes(max_bytes));
    }
    if (!more) return bytes;
  }
}

}  // namespace sluice::platform
