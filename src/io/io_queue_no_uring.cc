#include "io/io_queue.h"

namespace sluice::io {

Result<std::unique_ptr<IoQueue>> CreateUringQueue(int) {
  return Fail(ErrorCode::kUnsupported, "this build has no io_uring");
}

}  // namespace sluice::io
