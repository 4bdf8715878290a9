// IoQueue: reads of files that are under way side by side, so that storage always has the next one.
//
// A queue owns neither files nor buffers: both must live until a read's completion was waited for, or the queue is
// destroyed (which waits for all). One thread at a time may call Submit, one at a time Wait or Poll; the two may overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "platform/file.h"

namespace sluice::io {

struct IoRead {
  const platform::File* file;
  uint64_t offset;
  std::span<std::byte> buffer;  // aligned as the file was opened for (File::kDirectAlignment)
  uint64_t tag;                 // comes back with the completion
};

// `result`: bytes read, which may be fewer than were asked for, 0 at the end of the file; or −errno.
struct IoCompletion {
  uint64_t tag = 0;
  int64_t result = 0;
};

class IoQueue {
 public:
  virtual ~IoQueue() = default;
  // "io_uring" or "pread".
  virtual std::string_view name() const = 0;
  // Precondition: fewer than `depth` reads are under way.
  virtual void Submit(const IoRead& read) = 0;
  // The next completion, in any order; waits for it. Precondition: a read is under way that no other Wait will get.
  virtual IoCompletion Wait() = 0;
  // A completion that is there already, if any: costs no call of the system where there is none.
  virtual std::optional<IoCompletion> Poll() = 0;
};

enum class IoBackend {
  kAuto,   // io_uring where the kernel allows it, else pread
  kUring,
  kPread,  // blocking reads on a few threads
};

// "auto", "io_uring" or "pread".
std::string_view BackendName(IoBackend backend);
std::optional<IoBackend> BackendByName(std::string_view name);

// A queue for up to `depth` reads at a time. Errors: kUnsupported when io_uring was asked for and the system or this
// build has none.
Result<std::unique_ptr<IoQueue>> CreateIoQueue(IoBackend backend, int depth);

Result<std::unique_ptr<IoQueue>> CreateUringQueue(int depth);
Result<std::unique_ptr<IoQueue>> CreatePreadQueue(int depth);

}  // namespace sluice::io
