// Linear: products of activations with weight matrices, several at a time, over all workers.
//
// Work is cut into runs of whole rows of about equal bytes; each run is one kernel call for the whole batch, followed
// by what belongs to it (bias, gate, residual), so that intermediates need no pass of their own. How the rows are cut
// never changes a bit: each output element is one kernel reduction and a fixed chain of operations.
#pragma once

#include <cstdint>
#include <span>

#include "ops/activations.h"
#include "runtime/context.h"
#include "tensor/tensor_view.h"

namespace sluice::ops {

// y = scale · (W · x) + bias. Scales other than 1 come with NVFP4 files (".scale" tensors).
struct Linear {
  tensor::TensorView weight;    // [rows, columns]
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

// Up to four products of the same input in one go.
inline constexpr size_t kMaxProjections = 4;
void Project(const runtime::Context& context, const WorkerScratch& scratch, Activations& input,
             std::span<const Projection> projections);

// The feed-forward input: y = act(gate · x) ∘ (up · x), or act(gate · x) where there is no `up`. `activation` is one of
// the kernels' gates; gate and up have the same shape. up_scratch: [batch, rows] like y, unused without `up`.
using GateFn = void (*)(const float* gate, const float* up, int64_t n, float* y);
void ProjectGated(const runtime::Context& context, const WorkerScratch& scratch, Activations& input, const Linear& gate,
                  const Linear* up, GateFn activation, float* y, float* up_scratch);

}  // namespace sluice::ops
