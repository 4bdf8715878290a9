#include "ops/linear.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace sluice::ops {

namespace {

// Rows of a work unit: a multiple of the kernels' panels, about kUnitBytes of weights (kernels read several stretches of
// a unit side by side, and short ones cost bandwidth), but enough units that all workers have some and a slow one can
// be helped.
constexpr int64_t kPanelRows = 16;
constexpr int64_t kUnitBytes = 512 * 1024;

int64_t RowsPerUnit(const tensor::TensorView& weight, int64_t total_rows, int workers) {
  const int64_t by_bytes = kUnitBytes / static_cast<int64_t>(weight.row_bytes());
  const int64_t by_workers = total_rows / (workers * 4);
  const int64_t rows = std::min(by_bytes, by_workers) / kPanelRows * kPanelRows;
  return std::max(rows, kPanelRows);
}

// Rows [first, first + rows) of y = scale · (W · x), laid out as y[b * stride + r].
void Multiply(const runtime::Context& context, const WorkerScratch& scratch, int worker, const Linear& linear,
              const kernels::ActivationRows& x, int64_t first, int64_t rows, float* y, int64_t stride) {
  context.kernels->matmul[static_cast<size_t>(linear.weight.dtype)]({.weights = linear.weight.row(first),
                                                                     .row_bytes = linear.weight.row_bytes(),
                                                                     .rows = rows,
                                                                     .x = x,
                                                                     .y = y + first,
                                                                     .y_stride = stride,
                                                                     .scratch = scratch.of(worker)});
  for (int64_t b = 0; b < x.batch; ++b) {
    float* row = y + b * stride;
    if (linear.scale != 1.0f) {
      for (int64_t r = first; r < first + rows; ++r) row[r] *= linear.scale;
    }
    if (linear.bias != nullptr) {
      for (int64_t r = first; r < first + rows; ++r) row[r] += linear.bias[r];
    }
  }
}

}  // namespace

void Project(const runtime::Context& context, const WorkerScratch& scratch, Activations& input,
             std::span<const Projection> projections) {
  SLUICE_CHECK(projections.size() <= kMaxProjections);
  struct Part {
    kernels::ActivationRows x;
    int64_t rows_per_unit;
    int64_t first_unit, end_unit;
  };
  std::array<Part, kMaxProjections> parts;
  int64_t total_rows = 0;
  for (const Projection& p : projections) total_rows += p.linear->rows();
  int64_t units = 0;
  for (size_t i = 0; i < projections.size(); ++i) {
    const tensor::TensorView& weight = projections[i].linear->weight;
    const int64_t rows_per_unit = RowsPerUnit(weight, total_rows, context.pool->size());
    const int64_t first_unit = units;
    units += (weight.rows + rows_per_unit - 1) / rows_per_unit;
    parts[i] = {input.For(context, weight.dtype), rows_per_unit, first_unit, units};
  }
  context.pool->ParallelFor(units, 1, [&](int64_t unit, int64_t, int worker) {
    size_t i = 0;
    while (unit >= parts[i].end_unit) ++i;
    const Part& part = parts[i];
    const Projection& p = projections[i];
    const int64_t first = (unit - part.first_unit) * part.rows_per_unit;
    const int64_t rows = std::min(part.rows_per_unit, p.linear->rows() - first);
    Multiply(context, scratch, worker, *p.linear, part.x, first, rows, p.y, p.stride);
    if (p.residual == nullptr) return;
    for (int64_t b = 0; b < part.x.batch; ++b) {
      const float* y = p.y + b * p.stride;
      float* residual = p.residual + b * p.stride;
      for (int64_t r = first; r < first + rows; ++r) residual[r] += p.multiplier * y[r];
    }
  });
}

void ProjectGated(const runtime::Context& context, const WorkerScratch& scratch, Activations& input, const Linear& gate,
                  const Linear* up, GateFn activation, float* y, float* up_scratch) {
  const int64_t d_ff = gate.rows();
  const kernels::ActivationRows x_gate = input.For(context, gate.weight.dtype);
  const kernels::ActivationRows x_up = up == nullptr ? x_gate : input.For(context, up->weight.dtype);
  const int64_t rows_per_unit = RowsPerUnit(gate.weight, d_ff, context.pool->size());
  const int64_t units = (d_ff + rows_per_unit - 1) / rows_per_unit;
  context.pool->ParallelFor(units, 1, [&](int64_t unit, int64_t, int worker) {
    const int64_t first = unit * rows_per_unit;
    const int64_t rows = std::min(rows_per_unit, d_ff - first);
    Multiply(context, scratch, worker, gate, x_gate, first, rows, y, d_ff);
    if (up != nullptr) Multiply(context, scratch, worker, *up, x_up, first, rows, up_scratch, d_ff);
    for (int64_t b = 0; b < x_gate.batch; ++b) {
      float* out = y + b * d_ff + first;
      activation(out, up == nullptr ? nullptr : up_scratch + b * d_ff + first, rows, out);
    }
  });
}

}  // namespace sluice::ops
