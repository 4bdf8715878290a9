// Linear: products of activations with weight matrices, several at a time, over all workers.
//
// An operation's slabs (weights/schedule.h) are cut into units of whole rows of about equal bytes; each is
// one kernel call for the whole batch, followed by what belongs to it (bias, gate, residual), so that
// intermediates need no pass of their own. How the rows are cut never changes a bit: each output element is
// one kernel reduction and a fixed chain of operations. Workers wait for the slabs of their units as these
// arrive from storage.
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

// Where one product goes: y[b * stride + r], or, where y is null, on the residual stream that is laid out so:
// residual += multiplier · product, a part at a time.
struct Projection {
  const Linear* linear;
  float* y;
  int64_t stride;
  float* residual = nullptr;
  float multiplier = 1.0f;
};

// Scratch for each worker: what the kernels want, and products that go no further than their unit.
class WorkerScratch {
 public:
  static uint64_t Bytes(int workers, int64_t max_batch) {
    return static_cast<uint64_t>(workers) * BytesOfOne(max_batch);
  }
  WorkerScratch() = default;
  // `memory`: Bytes(…), aligned to a cache line; outlives this.
  WorkerScratch(int64_t max_batch, std::span<std::byte> memory)
      : bytes_(memory), bytes_of_one_(BytesOfOne(max_batch)) {}

  std::span<std::byte> kernel(int worker) const { return of(worker).first(kernels::kMatmulScratchBytes); }
  // Room for the products of at least a panel of rows with the whole batch.
  std::span<float> products(int worker) const {
    const std::span<std::byte> rest = of(worker).subspan(kernels::kMatmulScratchBytes);
    return {reinterpret_cast<float*>(rest.data()), rest.size() / sizeof(float)};
  }

 private:
  static uint64_t BytesOfOne(int64_t max_batch);
  std::span<std::byte> of(int worker) const {
    return bytes_.subspan(static_cast<size_t>(worker) * bytes_of_one_, bytes_of_one_);
  }

  std::span<std::byte> bytes_;
  uint64_t bytes_of_one_ = 0;
};

// An operation of the schedule, cut into units of work: made once.
class Operation {
 public:
  struct Unit {
    int32_t slab;
    int32_t extent;  // of the slab; the first of a paired operation
    int32_t rows;
    int64_t first_row;  // in the matrix
    int64_t row_in_extent;
  };

  Operation(weights::WeightStore& store, const weights::Schedule& schedule, int index, int workers);

  weights::WeightStore& store() const { return *store_; }
  int index() const { return index_; }
  std::span<const Unit> units() const { return units_; }
  // Those of one matrix of an operation that is not paired.
  std::span<const Unit> units_of(int matrix) const;
  // What the inputs of its matrices must be set in.
  const ActivationForms& forms() const { return forms_; }
  // The matrix that an extent is of.
  int matrix(const Unit& unit) const {
    return store_->slabs()[static_cast<size_t>(unit.slab)].extents[static_cast<size_t>(unit.extent)].matrix;
  }

 private:
  weights::WeightStore* store_;
  int index_;
  std::vector<Unit> units_;
  ActivationForms forms_;
};

// Asked again and again by the calling thread; false stops the work.
using GoOn = std::function<bool()>;

// The products of an operation's matrices, in their order, with one input. Errors: kInterrupted when `go_on`
// says so; what the store says when weights could not be read. Nothing in y means anything then.
Status Project(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
               const Activations& input, std::span<const Projection> projections, const GoOn& go_on);
// The same, one matrix after another: each has been worked on when the next begins.
Status ProjectApart(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
                    const Activations& input, std::span<const Projection> projections, const GoOn& go_on);

// The feed-forward input: y = act(gate · x) ∘ (up · x), or act(gate · x) where there is no `up`. `activation`
// is one of the kernels' gates; gate and up are paired. y: [batch, rows]. Errors: as Project.
using GateFn = void (*)(const float* gate, const float* up, int64_t n, float* y);
Status ProjectGated(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
                    const Activations& input, const Linear& gate, const Linear* up, GateFn activation,
                    float* y, const GoOn& go_on);
// The same products, before the activation: gate · x and up · x, each [batch, rows].
Status ProjectPair(const runtime::Context& context, const WorkerScratch& scratch, const Operation& operation,
                   const Activations& input, const Linear& gate, const Linear& up, float* y_gate, float* y_up,
                   const GoOn& go_on);

}  // namespace sluice::ops
