// Activations: one matrix of layer inputs, in each form that the weights it meets ask for.
//
// Weight formats want their activations as f32 or as int8 in blocks of several lengths (kernels.h). An input is set
// once with Set and quantised at most once per form, when a product first asks for it; so Q, K and V share the work.
//
// Buffers are planned at start from the forms that a model uses; nothing is allocated afterwards. One thread at a
// time calls; the pool's workers do the quantising.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/kernels.h"
#include "memory/arena.h"
#include "runtime/context.h"

namespace sluice::ops {

inline constexpr size_t kActivationKinds = 5;

// Which forms a model's weights ask for, and the largest input: what the buffers are sized from.
struct ActivationPlan {
  std::array<bool, kActivationKinds> kinds{};
  int64_t max_batch = 0;
  int64_t max_columns = 0;

  void Require(formats::DType weight) { kinds[static_cast<size_t>(kernels::ActivationKindFor(weight))] = true; }
  uint64_t Bytes() const;
};

class Activations {
 public:
  // Takes plan.Bytes() from `arena`.
  Activations(const ActivationPlan& plan, memory::Arena& arena);

  // x: [batch, columns], kept by the caller until the next Set.
  void Set(const float* x, int64_t batch, int64_t columns);

  // The input in the form that `weight` meets, quantised on first use.
  kernels::ActivationRows For(const runtime::Context& context, formats::DType weight);

 private:
  struct Form {
    int8_t* q = nullptr;       // [max_batch, max_columns]
    float* scale = nullptr;    // [max_batch, max_columns / block]
    int16_t* sums = nullptr;   // [max_batch, max_columns / 16]
    bool ready = false;
  };
  std::array<Form, kActivationKinds> forms_;
  const float* x_ = nullptr;
  int64_t batch_ = 0;
  int64_t columns_ = 0;
};

}  // namespace sluice::ops
