#include "ops/linear.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/check.h"
#include "base/units.h"
#include "memory/arena.h"

namespace sluice::ops {

namespace {

// Rows of a work unit: a multiple of the kernels' panels, about kUnitBytes of weights (kernels read several
// stretches of a unit side by side, and short ones cost bandwidth), but enough units that all workers have
// some and a slow one can be helped.
using weights::kPanelRows;
constexpr int64_t kFloatPanelRows = 64;  // of F32, F16 and BF16 weights
constexpr int64_t kUnitBytes = 512 * 1024;
// Of products that stay within a worker: 256 KiB, to be found in its cache again.
constexpr int64_t kProductFloats = 64 * 1024;

int64_t MostPanelRows(formats::DType weight) {
  return kernels::ActivationKindFor(weight) == kernels::ActivationKind::kF32 ? kFloatPanelRows : kPanelRows;
}

// At most `rows`, in whole panels if there are as many.
int64_t WholePanels(formats::DType weight, int64_t rows) {
  const int64_t panel = rows < MostPanelRows(weight) ? kPanelRows : MostPanelRows(weight);
  return rows / panel * panel;
}

int64_t RowsPerUnit(const weights::Matrix& weight, int64_t total_rows, int workers) {
  const int64_t by_bytes =
      std::max(kUnitBytes / static_cast<int64_t>(weight.row_bytes()), MostPanelRows(weight.dtype));
  const int64_t by_workers = total_rows / (workers * 4);
  return std::max(WholePanels(weight.dtype, std::min(by_bytes, by_workers)), kPanelRows);
}

// Some rows of a unit.
struct Part {
  int64_t first_row;  // in the matrix
  int64_t row_in_extent;
  int64_t rows;
};

// y = scale · (W · x) for a part's rows, laid out as y[b * stride + (row of the part)].
void Multiply(const runtime::Context& context, std::span<std::byte> scratch, const Linear& linear,
              const kernels::ActivationRows& x, const std::byte* extent, const Part& part, float* y,
              int64_t stride) {
  const uint64_t row_bytes = linear.weight.row_bytes();
  context.kernels->matmul[static_cast<size_t>(linear.weight.dtype)](
      {.weights = extent + static_cast<uint64_t>(part.row_in_extent) * row_bytes,
       .row_bytes = row_bytes,
       .rows = part.rows,
       .x = x,
       .y = y,
       .y_stride = stride,
       .scratch = scratch});
  const float* bias = linear.bias == nullptr ? nullptr : linear.bias + part.first_row;
  for (int64_t b = 0; b < x.batch; ++b) {
    float* row = y + b * stride;
    if (linear.scale != 1.0f) {
      for (int64_t r = 0; r < part.rows; ++r) row[r] *= linear.scale;
    }
    if (bias != nullptr) {
      for (int64_t r = 0; r < part.rows; ++r) row[r] += bias[r];
    }
  }
}

Part Whole(const Operation::Unit& unit) { return {unit.first_row, unit.row_in_extent, unit.rows}; }

// Calls fn(part) for parts of a unit whose products for the whole batch find room in `products`.
template <typename F>
void ForEachPart(const Operation::Unit& unit, formats::DType weight, int64_t batch, std::span<float> products,
                 F&& fn) {
  const int64_t fitting = static_cast<int64_t>(products.size()) / batch;
  const int64_t step = fitting >= unit.rows ? unit.rows : WholePanels(weight, fitting);
  for (int64_t row = 0; row < unit.rows; row += step)
    fn(Part{unit.first_row + row, unit.row_in_extent + row, std::min(step, unit.rows - row)});
}

// Calls compute(unit, extents of its slab, worker) for units of an operation, as its slabs are there.
template <typename Compute>
Status ForEachUnit(const runtime::Context& context, const Operation& operation,
                   std::span<const Operation::Unit> units, const GoOn& go_on, Compute&& compute) {
  weights::WeightStore& store = operation.store();
  std::atomic<bool> stopped{false}, failed{false};
  const auto work = [&](int64_t index, int64_t, int worker) {
    // The calling thread is worker 0.
    if (worker == 0 && go_on && !go_on()) stopped.store(true, std::memory_order_relaxed);
    if (stopped.load(std::memory_order_relaxed)) return;
    const Operation::Unit& unit = units[static_cast<size_t>(index)];
    const std::byte* const* extents = store.Acquire(unit.slab);
    if (extents == nullptr) {
      failed.store(true, std::memory_order_relaxed);
      return;
    }
    compute(unit, extents, worker);
    store.Release(unit.slab, unit.rows);
  };
  // Not between the matrices of one operation: a slab may be half done.
  if (units.data() == operation.units().data()) store.BeginOperation(operation.index());
  const auto count = static_cast<int64_t>(units.size());
  if (store.InOrder(operation.index())) {
    context.pool->ParallelForInOrder(count, 1, work);
  } else {
    context.pool->ParallelFor(count, 1, work);
  }
  if (failed) return store.status();
  if (stopped) return Fail(ErrorCode::kInterrupted, "stopped while computing");
  return {};
}

Status ProjectUnits(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
                    std::span<const Operation::Unit> units, const Activations& input,
                    std::span<const Projection> projections, const GoOn& go_on) {
  SLUICE_CHECK(projections.size() <= weights::kMaxMatrices);
  std::array<kernels::ActivationRows, weights::kMaxMatrices> x;
  for (size_t i = 0; i < projections.size(); ++i) x[i] = input.For(projections[i].linear->weight.dtype);
  return ForEachUnit(context, operation, units, go_on,
                     [&](const Operation::Unit& unit, const std::byte* const* extents, int worker) {
                       const auto i = static_cast<size_t>(operation.matrix(unit));
                       const Projection& p = projections[i];
                       const std::byte* const extent = extents[unit.extent];
                       if (p.y != nullptr) {
                         Multiply(context, scratch.kernel(worker), *p.linear, x[i], extent, Whole(unit),
                                  p.y + unit.first_row, p.stride);
                         return;
                       }
                       const std::span<float> products = scratch.products(worker);
                       ForEachPart(unit, p.linear->weight.dtype, x[i].batch, products, [&](const Part& part) {
                         Multiply(context, scratch.kernel(worker), *p.linear, x[i], extent, part,
                                  products.data(), part.rows);
                         for (int64_t b = 0; b < x[i].batch; ++b) {
                           const float* y = products.data() + b * part.rows;
                           float* residual = p.residual + b * p.stride + part.first_row;
                           for (int64_t r = 0; r < part.rows; ++r) residual[r] += p.multiplier * y[r];
                         }
                       });
                     });
}

}  // namespace

uint64_t WorkerScratch::BytesOfOne(int64_t max_batch) {
  const int64_t products = std::max(kProductFloats, kPanelRows * max_batch);
  return kernels::kMatmulScratchBytes +
         AlignUp(static_cast<uint64_t>(products) * sizeof(float), memory::kCacheLineBytes);
}

Operation::Operation(weights::WeightStore& store, const weights::Schedule& schedule, int index, int workers)
    : store_(&store), index_(index) {
  const weights::Operation& operation = schedule.operations[static_cast<size_t>(index)];
  for (int i = 0; i < operation.count; ++i) forms_.Require(operation.matrices[static_cast<size_t>(i)].dtype);
  int64_t total_rows = 0;
  for (int i = 0; i < (operation.paired ? 1 : operation.count); ++i)
    total_rows += operation.matrices[static_cast<size_t>(i)].rows;
  const auto [first_slab, end_slab] = store.SlabsOf(index);
  for (int slab = first_slab; slab < end_slab; ++slab) {
    const weights::Slab& about = store.slabs()[static_cast<size_t>(slab)];
    for (int e = 0; e < (operation.paired ? 1 : about.n_extents); ++e) {
      const weights::Extent& extent = about.extents[static_cast<size_t>(e)];
      const int64_t step =
          RowsPerUnit(operation.matrices[static_cast<size_t>(extent.matrix)], total_rows, workers);
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

std::span<const Operation::Unit> Operation::units_of(int matrix) const {
  const auto of = [this](const Unit& unit) { return this->matrix(unit); };
  const auto first = std::ranges::lower_bound(units_, matrix, {}, of);
  return {first, std::ranges::upper_bound(units_, matrix, {}, of)};
}

Status Project(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
               const Activations& input, std::span<const Projection> projections, const GoOn& go_on) {
  return ProjectUnits(context, scratch, operation, operation.units(), input, projections, go_on);
}

Status ProjectApart(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
                    const Activations& input, std::span<const Projection> projections, const GoOn& go_on) {
  for (int i = 0; i < static_cast<int>(projections.size()); ++i)
    SLUICE_TRY(ProjectUnits(context, scratch, operation, operation.units_of(i), input, projections, go_on));
  return {};
}

Status ProjectGated(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
                    const Activations& input, const Linear& gate, const Linear* up, GateFn activation,
                    float* y, const GoOn& go_on) {
  const int64_t d_ff = gate.rows();
  const kernels::ActivationRows x_gate = input.For(gate.weight.dtype);
  const kernels::ActivationRows x_up = up == nullptr ? x_gate : input.For(up->weight.dtype);
  return ForEachUnit(context, operation, operation.units(), go_on,
                     [&](const Operation::Unit& unit, const std::byte* const* extents, int worker) {
                       const std::span<float> products = scratch.products(worker);
                       const std::span<std::byte> kernel = scratch.kernel(worker);
                       ForEachPart(unit, gate.weight.dtype, x_gate.batch, products, [&](const Part& part) {
                         Multiply(context, kernel, gate, x_gate, extents[0], part, y + part.first_row, d_ff);
                         if (up != nullptr)
                           Multiply(context, kernel, *up, x_up, extents[1], part, products.data(), part.rows);
                         for (int64_t b = 0; b < x_gate.batch; ++b) {
                           float* out = y + b * d_ff + part.first_row;
                           activation(out, up == nullptr ? nullptr : products.data() + b * part.rows,
                                      part.rows, out);
                         }
                       });
                     });
}

Status ProjectPair(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
                   const Activations& input, const Linear& gate, const Linear& up, float* y_gate, float* y_up,
                   const GoOn& go_on) {
  const int64_t d_ff = gate.rows();
  const kernels::ActivationRows x_gate = input.For(gate.weight.dtype), x_up = input.For(up.weight.dtype);
  return ForEachUnit(
      context, operation, operation.units(), go_on,
      [&](const Operation::Unit& unit, const std::byte* const* extents, int worker) {
        const std::span<std::byte> kernel = scratch.kernel(worker);
        Multiply(context, kernel, gate, x_gate, extents[0], Whole(unit), y_gate + unit.first_row, d_ff);
        Multiply(context, kernel, up, x_up, extents[1], Whole(unit), y_up + unit.first_row, d_ff);
      });
}

}  // namespace sluice::ops
