// Activations: one matrix of layer inputs, in each form that the weights it meets ask for.
//
// Weight formats want their activations as f32 or as int8 in blocks of several lengths (kernels.h). An input
// is set once, in all the forms that a product needs; so Q, K and V share the work. Rows that a norm makes
// are quantised while they are at hand, and never written as a matrix of floats where nobody wants one
// (Fusion::kNorm).
//
// Buffers are planned at start from the forms that a model uses; nothing is allocated afterwards. One thread
// at a time calls; the pool's workers do the work.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "kernels/kernels.h"
#include "runtime/context.h"

namespace sluice::ops {

inline constexpr size_t kActivationKinds = 5;

// Forms of activations.
class ActivationForms {
 public:
  void Require(formats::DType weight) {
    has_[static_cast<size_t>(kernels::ActivationKindFor(weight))] = true;
  }
  bool Has(kernels::ActivationKind kind) const { return has_[static_cast<size_t>(kind)]; }

 private:
  std::array<bool, kActivationKinds> has_{};
};

// What the buffers of an input are sized from.
struct ActivationPlan {
  ActivationForms forms;  // that the weights it will meet ask for
  int64_t max_batch = 0;
  int64_t max_columns = 0;
  bool made_row_by_row = false;  // SetRows will be called
  bool fused = true;             // SetRows quantises a row as soon as it is made
  int workers = 1;

  uint64_t Bytes() const;
};

class Activations {
 public:
  // Writes row `row` [columns] of an input. Called by all workers.
  using MakeRow = std::function<void(int64_t row, float* out)>;

  Activations() = default;
  // `memory`: plan.Bytes(), aligned to a cache line; outlives this.
  Activations(const ActivationPlan& plan, std::span<std::byte> memory);

  // Takes x [batch, columns], kept by the caller for as long as products are made of it.
  void Set(const runtime::Context& context, const ActivationForms& forms, const float* x, int64_t batch,
           int64_t columns);
  // Takes the rows that `make` writes.
  void SetRows(const runtime::Context& context, const ActivationForms& forms, int64_t batch, int64_t columns,
               const MakeRow& make);

  // The input in the form that `weight` meets, one of those it was set in.
  kernels::ActivationRows For(formats::DType weight) const;
  // [batch, columns]; null where rows were quantised as soon as they were made.
  const float* f32() const { return x_; }

 private:
  friend struct ActivationPlan;
  struct Form {
    int8_t* q = nullptr;      // [max_batch, max_columns]
    float* scale = nullptr;   // [max_batch, max_columns / block]
    int16_t* sums = nullptr;  // [max_batch, max_columns / 16]
    kernels::Reach* reach = nullptr;  // kQ8x256: [max_batch, max_columns / 256]
  };
  // Points the buffers into `memory`, or nowhere if null; returns the bytes that they take.
  uint64_t Cut(const ActivationPlan& plan, std::byte* memory);
  void Begin(const runtime::Context& context, int64_t batch, int64_t columns);
  void Quantize(const runtime::Context& context, const ActivationForms& forms, const float* x, int64_t row);

  std::array<Form, kActivationKinds> forms_;
  float* rows_ = nullptr;     // [max_batch, max_columns] of rows that were made, or
  float* scratch_ = nullptr;  // [workers, max_columns] where they are quantised at once
  int64_t max_columns_ = 0;
  const float* x_ = nullptr;
  int64_t batch_ = 0;
  int64_t columns_ = 0;
  bool has_reach_ = false;  // of this input: a row alone meets products that have no use for it
};

}  // namespace sluice::ops
