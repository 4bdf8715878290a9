// Linear: products of activations with weight matrices, several at a time, over all workers.
//
// An operation's slabs (weights/schedule.h) are cut into units of whole rows of about equal bytes; each is one kernel
// call for the whole batch, followed by what belongs to it (bias, gate, residual), so that intermediates need no pass of
// their own. How the rows are cut never changes a bit: each output element is one kernel reduction and a fixed chain of
// operations. Workers wait for the slabs of their units as these arrive from storage.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ops/activations.h"
#include "runtime/context.h"
#include "weights/weight_store.h"

namespace sluice::ops {

// y = scale · (W · x) + bias. Scales other than 1 come with NVFP4 files (".scale" tensors).
struct Linear {
  weights::Matrix weight;       // [rows, columns]
  const float* bias = nullptr;  // [rows] or null
  float scale = 1.0f;

  explicit operator bool() const { return static_cast<bool>(weight); }
  int64_t rows() const { return weight.rows; }
};

// Where one product goes: y[b * stride + r]. With `residual`, a branch of the residual stream, laid out like y:
// residual += multiplier · y follows at once, and y is only scratch.
struct Projection {
  const Linear* linear;
  float* y;
  int64_t stride;
  float* residual = nullptr;
  float multiplier = 1.0f;
};

// Scratch that the kernels want, one piece for each worker.
class WorkerScratch {
 public:
  static uint64_t Bytes(int workers) { return static_cast<uint64_t>(workers) * kernels::kMatmulScratchBytes; }
  WorkerScratch(int workers, memory::Arena& arena) : bytes_(arena.Allocate(Bytes(workers), 64)) {}
  std::span<std::byte> of(int worker) const {
    return bytes_.subspan(static_cast<size_t>(worker) * kernels::kMatmulScratchBytes, kernels::kMatmulScratchBytes);
  }

 private:
  std::span<std::byte> bytes_;
};

// An operation of the schedule, cut into units of work: made once.
class Operation {
 public:
  struct Unit {
    int32_t slab;
    int32_t extent;     // of the slab; the first of a paired operation
    int32_t rows;
    int64_t first_row;  // in the matrix
    int64_t row_in_extent;
  };

  Operation(weights::WeightStore& store, const weights::Schedule& schedule, int index, int workers);

  weights::WeightStore& store() const { return *store_; }
  int index() const { return index_; }
  std::span<const Unit> units() const { return units_; }
  // The matrix that an extent is of.
  int matrix(const Unit& unit) const {
    return store_->slabs()[static_cast<size_t>(unit.slab)].extents[static_cast<size_t>(unit.extent)].matrix;
  }

 private:
  weights::WeightStore* store_;
  int index_;
  std::vector<Unit> units_;
};

// Asked again and again by the calling thread; false stops the work.
using GoOn = std::function<bool()>;

// The products of an operation's matrices, in their order, with one input. Errors: kInterrupted when `go_on` says so;
// what the store says when weights could not be read. Nothing in y means anything then.
Status Project(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
               Activations& input, std::span<const Projection> projections, const GoOn& go_on);

// The feed-forward input: y = act(gate · x) ∘ (up · x), or act(gate · x) where there is no `up`. `activation` is one of
// the kernels' gates; gate and up are paired. up_scratch: [batch, rows] like y, unused without `up`. Errors: as Project.
using GateFn = void (*)(const float* gate, const float* up, int64_t n, float* y);
Status ProjectGated(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
                    Activations& input, const Linear& gate, const Linear* up, GateFn activation, float* y,
                    float* up_scratch, const GoOn& go_on);

}  // namespace sluice::ops
