#include "ops/activations.h"

#include "base/check.h"
#include "base/units.h"

namespace sluice::ops {

namespace {

using kernels::ActivationKind;

struct FormBytes {
  uint64_t q, scale, sums;
};

FormBytes BytesOf(ActivationKind kind, const ActivationPlan& plan) {
  const uint64_t elements = static_cast<uint64_t>(plan.max_batch) * static_cast<uint64_t>(plan.max_columns);
  return {AlignUp(elements, 64), AlignUp(elements / kernels::BlockLength(kind) * sizeof(float), 64),
          AlignUp(elements / 16 * sizeof(int16_t), 64)};
}

}  // namespace

uint64_t ActivationPlan::Bytes() const {
  uint64_t total = 0;
  for (size_t i = 0; i < kActivationKinds; ++i) {
    if (!kinds[i] || static_cast<ActivationKind>(i) == ActivationKind::kF32) continue;
    const FormBytes bytes = BytesOf(static_cast<ActivationKind>(i), *this);
    total += bytes.q + bytes.scale + bytes.sums;
  }
  return total;
}

Activations::Activations(const ActivationPlan& plan, memory::Arena& arena) {
  for (size_t i = 0; i < kActivationKinds; ++i) {
    if (!plan.kinds[i] || static_cast<ActivationKind>(i) == ActivationKind::kF32) continue;
    const FormBytes bytes = BytesOf(static_cast<ActivationKind>(i), plan);
    forms_[i].q = reinterpret_cast<int8_t*>(arena.Allocate(bytes.q, 64).data());
    forms_[i].scale = reinterpret_cast<float*>(arena.Allocate(bytes.scale, 64).data());
    forms_[i].sums = reinterpret_cast<int16_t*>(arena.Allocate(bytes.sums, 64).data());
  }
}

void Activations::Set(const float* x, int64_t batch, int64_t columns) {
  x_ = x;
  batch_ = batch;
  columns_ = columns;
  for (Form& form : forms_) form.ready = false;
}

kernels::ActivationRows Activations::For(const runtime::Context& context, formats::DType weight) {
  const ActivationKind kind = kernels::ActivationKindFor(weight);
  kernels::ActivationRows rows{.kind = kind, .batch = batch_, .columns = columns_};
  if (kind == ActivationKind::kF32) {
    rows.f32 = x_;
    return rows;
  }
  Form& form = forms_[static_cast<size_t>(kind)];
  const int64_t blocks = columns_ / kernels::BlockLength(kind);
  if (!form.ready) {
    SLUICE_CHECK(form.q != nullptr);
    const auto quantize = [&](int64_t begin, int64_t end, int) {
      for (int64_t b = begin; b < end; ++b) {
        context.kernels->quantize_row(kind, x_ + b * columns_, columns_, form.q + b * columns_,
                                      form.scale + b * blocks, form.sums + b * (columns_ / 16));
      }
    };
    // One row costs less than waking a worker.
    if (batch_ == 1) {
      quantize(0, 1, 0);
    } else {
      context.pool->ParallelFor(batch_, 4, quantize);
    }
    form.ready = true;
  }
  rows.q = form.q;
  rows.scale = form.scale;
  rows.sums = form.sums;
  return rows;
}

}  // namespace sluice::ops
