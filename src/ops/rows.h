// Rows: the same work for each row of a batch, over all workers.
#pragma once

#include <cstdint>

#include "runtime/context.h"

namespace sluice::ops {

// Calls fn(row, worker) for each row. One row costs less than waking a worker.
template <typename F>
void ForEachRow(const runtime::Context& context, int64_t rows, F&& fn) {
  if (rows == 1) {
    fn(int64_t{0}, 0);
    return;
  }
  context.pool->ParallelFor(rows, 1, [&](int64_t row, int64_t, int worker) { fn(row, worker); });
}

}  // namespace sluice::ops
