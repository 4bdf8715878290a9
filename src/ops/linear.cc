#include "ops/linear.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/check.h"

namespace sluice::ops {

namespace {

// Rows of a work unit: a multiple of the kernels' panels, about kUnitBytes of weights (kernels read several stretches of
// a unit side by side, and short ones cost bandwidth), but enough units that all workers have some and a slow one can
// be helped.
constexpr int64_t kPanelRows = 16;
constexpr int64_t kUnitBytes = 512 * 1024;

int64_t RowsPerUnit(const weights::Matrix& weight, int64_t total_rows, int workers) {
  const int64_t by_bytes = kUnitBytes / static_cast<int64_t>(weight.row_bytes());
  const int64_t by_workers = total_rows / (workers * 4);
  const int64_t rows = std::min(by_bytes, by_workers) / kPanelRows * kPanelRows;
  return std::max(rows, kPanelRows);
}

// A unit's rows of y = scale · (W · x), laid out as y[b * stride + row].
void Multiply(const runtime::Context& context, std::span<std::byte> scratch, const Linear& linear,
              const kernels::ActivationRows& x, const std::byte* extent, const Operation::Unit& unit, float* y,
              int64_t stride) {
  const uint64_t row_bytes = linear.weight.row_bytes();
  const int64_t first = unit.first_row, end = unit.first_row + unit.rows;
  context.kernels->matmul[static_cast<size_t>(linear.weight.dtype)](
      {.weights = extent + static_cast<uint64_t>(unit.row_in_extent) * row_bytes,
       .row_bytes = row_bytes,
       .rows = unit.rows,
       .x = x,
       .y = y + first,
       .y_stride = stride,
       .scratch = scratch});
  for (int64_t b = 0; b < x.batch; ++b) {
    float* row = y + b * stride;
    if (linear.scale != 1.0f) {
      for (int64_t r = first; r < end; ++r) row[r] *= linear.scale;
    }
    if (linear.bias != nullptr) {
      for (int64_t r = first; r < end; ++r) row[r] += linear.bias[r];
    }
  }
}

// Calls compute(unit, extents of its slab, worker) for all units of an operation, as its slabs are there.
template <typename Compute>
Status ForEachUnit(const runtime::Context& context, const Operation& operation, const GoOn& go_on, Compute&& compute) {
  weights::WeightStore& store = operation.store();
  std::atomic<bool> stopped{false}, failed{false};
  const auto work = [&](int64_t index, int64_t, int worker) {
    // The calling thread is worker 0.
    if (worker == 0 && go_on && !go_on()) stopped.store(true, std::memory_order_relaxed);
    if (stopped.load(std::memory_order_relaxed)) return;
    const Operation::Unit& unit = operation.units()[static_cast<size_t>(index)];
    const std::byte* const* extents = store.Acquire(unit.slab);
    if (extents == nullptr) {
      failed.store(true, std::memory_order_relaxed);
      return;
    }
    compute(unit, extents, worker);
    store.Release(unit.slab, unit.rows);
  };
  store.BeginOperation(operation.index());
  const auto units = static_cast<int64_t>(operation.units().size());
  if (store.InOrder(operation.index())) {
    context.pool->ParallelForInOrder(units, 1, work);
  } else {
    context.pool->ParallelFor(units, 1, work);
  }
  if (failed) return store.status();
  if (stopped) return Fail(ErrorCode::kInterrupted, "stopped while computing");
  return {};
}

}  // namespace

Operation::Operation(weights::WeightStore& store, const weights::Schedule& schedule, int index, int workers)
    : store_(&store), index_(index) {
  const weights::Operation& operation = schedule.operations[static_cast<size_t>(index)];
  int64_t total_rows = 0;
  for (int i = 0; i < (operation.paired ? 1 : operation.count); ++i)
    total_rows += operation.matrices[static_cast<size_t>(i)].rows;
  const auto [first_slab, end_slab] = store.SlabsOf(index);
  for (int slab = first_slab; slab < end_slab; ++slab) {
    const weights::Slab& about = store.slabs()[static_cast<size_t>(slab)];
    for (int e = 0; e < (operation.paired ? 1 : about.n_extents); ++e) {
      const weights::Extent& extent = about.extents[static_cast<size_t>(e)];
      const int64_t step = RowsPerUnit(operation.matrices[static_cast<size_t>(extent.matrix)], total_rows, workers);
      for (int64_t row = 0; row < extent.rows; row += step) {
        units_.push_back({.slab = slab,
                          .extent = e,
                          .rows = static_cast<int32_t>(std::min(step, extent.rows - row)),
                          .first_row = extent.first_row + row,
                          .row_in_extent = row});
      }
    }
  }
}

Status Project(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
               Activations& input, std::span<const Projection> projections, const GoOn& go_on) {
  SLUICE_CHECK(projections.size() <= weights::kMaxMatrices);
  std::array<kernels::ActivationRows, weights::kMaxMatrices> x;
  for (size_t i = 0; i < projections.size(); ++i) x[i] = input.For(context, projections[i].linear->weight.dtype);
  return ForEachUnit(context, operation, go_on,
                     [&](const Operation::Unit& unit, const std::byte* const* extents, int worker) {
    const auto i = static_cast<size_t>(operation.matrix(unit));
    const Projection& p = projections[i];
    Multiply(context, scratch.of(worker), *p.linear, x[i], extents[unit.extent], unit, p.y, p.stride);
    if (p.residual == nullptr) return;
    for (int64_t b = 0; b < x[i].batch; ++b) {
      const float* y = p.y + b * p.stride;
      float* residual = p.residual + b * p.stride;
      for (int64_t r = unit.first_row; r < unit.first_row + unit.rows; ++r) residual[r] += p.multiplier * y[r];
    }
  });
}

Status ProjectGated(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
                    Activations& input, const Linear& gate, const Linear* up, GateFn activation, float* y,
                    float* up_scratch, const GoOn& go_on) {
  const int64_t d_ff = gate.rows();
  const kernels::ActivationRows x_gate = input.For(context, gate.weight.dtype);
  const kernels::ActivationRows x_up = up == nullptr ? x_gate : input.For(context, up->weight.dtype);
  return ForEachUnit(context, operation, go_on,
                     [&](const Operation::Unit& unit, const std::byte* const* extents, int worker) {
    Multiply(context, scratch.of(worker), gate, x_gate, extents[0], unit, y, d_ff);
    if (up != nullptr) Multiply(context, scratch.of(worker), *up, x_up, extents[1], unit, up_scratch, d_ff);
    for (int64_t b = 0; b < x_gate.batch; ++b) {
      float* out = y + b * d_ff + unit.first_row;
      activation(out, up == nullptr ? nullptr : up_scratch + b * d_ff + unit.first_row, unit.rows, out);
    }
  });
}

}  // namespace sluice::ops
