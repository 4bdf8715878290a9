#include "io/io_queue.h"

namespace sluice::io {

std::string_view BackendName(IoBackend backend) {
  switch (backend) {
    case IoBackend::kAuto:
      return "auto";
    case IoBackend::kUring:
      return "io_uring";
    case IoBackend::kPread:
      return "pread";
  }
  return "";
}

std::optional<IoBackend> BackendByName(std::string_view name) {
  for (const IoBackend backend : {IoBackend::kAuto, IoBackend::kUring, IoBackend::kPread}) {
    if (BackendName(backend) == name) return backend;
  }
  return std::nullopt;
}

Result<std::unique_ptr<IoQueue>> CreateIoQueue(IoBackend backend, int depth) {
  if (backend == IoBackend::kPread) return CreatePreadQueue(depth);
  auto queue = CreateUringQueue(depth);
  if (queue || backend == IoBackend::kUring) return queue;
  // Containers and old kernels often have no io_uring.
  return CreatePreadQueue(depth);
}

}  // namespace sluice::io
