#include "io/io_queue.h"

namespace sluice::io {

Result<std::unique_ptr<IoQueue>> CreateIoQueue(IoBackend backend, int depth) {
  if (backend == IoBackend::kPread) return CreatePreadQueue(depth);
  auto queue = CreateUringQueue(depth);
  if (queue || backend == IoBackend::kUring) return queue;
  // Containers and old kernels often have no io_uring.
  return CreatePreadQueue(depth);
}

}  // namespace sluice::io
