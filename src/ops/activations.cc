#include "ops/activations.h"

#include "base/check.h"
#include "base/units.h"
#include "memory/arena.h"
#include "ops/rows.h"

namespace sluice::ops {

namespace {

using kernels::ActivationKind;

// Cuts memory into pieces; without memory it counts what they take.
class Cutter {
 public:
  explicit Cutter(std::byte* memory) : memory_(memory) {}

  template <typename T>
  void Cut(T** piece, int64_t count) {
    if (memory_ != nullptr) *piece = reinterpret_cast<T*>(memory_ + used_);
    used_ += AlignUp(static_cast<uint64_t>(count) * sizeof(T), memory::kCacheLineBytes);
  }
  uint64_t used() const { return used_; }

 private:
  std::byte* memory_;
  uint64_t used_ = 0;
};

// The forms that are quantised, one after another.
template <typename F>
void ForEachQuantized(const ActivationForms& forms, F&& fn) {
  for (size_t i = 0; i < kActivationKinds; ++i) {
    const auto kind = static_cast<ActivationKind>(i);
    if (kind != ActivationKind::kF32 && forms.Has(kind)) fn(kind);
  }
}

// Whether rows that are made have to be kept as floats.
bool KeepsRows(const ActivationPlan& plan) {
  return plan.made_row_by_row && (!plan.fused || plan.forms.Has(ActivationKind::kF32));
}

}  // namespace

uint64_t ActivationPlan::Bytes() const { return Activations().Cut(*this, nullptr); }

Activations::Activations(const ActivationPlan& plan, std::span<std::byte> memory)
    : max_columns_(plan.max_columns) {
  SLUICE_CHECK(Cut(plan, memory.data()) <= memory.size());
}

uint64_t Activations::Cut(const ActivationPlan& plan, std::byte* memory) {
  Cutter cutter(memory);
  const int64_t elements = plan.max_batch * plan.max_columns;
  ForEachQuantized(plan.forms, [&](ActivationKind kind) {
    Form& form = forms_[static_cast<size_t>(kind)];
    cutter.Cut(&form.q, elements);
    cutter.Cut(&form.scale, elements / kernels::BlockLength(kind));
    cutter.Cut(&form.sums, elements / 16);
    if (kind == ActivationKind::kQ8x256) cutter.Cut(&form.reach, elements / 256);
  });
  if (KeepsRows(plan)) {
    cutter.Cut(&rows_, elements);
  } else if (plan.made_row_by_row) {
    cutter.Cut(&scratch_, plan.workers * plan.max_columns);
  }
  return cutter.used();
}

void Activations::Quantize(const runtime::Context& context, const ActivationForms& forms, const float* x,
                           int64_t row) {
  ForEachQuantized(forms, [&](ActivationKind kind) {
    const Form& form = forms_[static_cast<size_t>(kind)];
    context.kernels->quantize_row(kind, x, columns_, form.q + row * columns_,
                                  form.scale + row * (columns_ / kernels::BlockLength(kind)),
                                  form.sums + row * (columns_ / 16));
    if (kind == ActivationKind::kQ8x256 && has_reach_)
      context.kernels->measure_reach(form.q + row * columns_, columns_, form.reach + row * (columns_ / 256));
  });
}

void Activations::Begin(const runtime::Context& context, int64_t batch, int64_t columns) {
  batch_ = batch;
  columns_ = columns;
  has_reach_ = batch > 1 && context.kernels->measure_reach != nullptr;
}

void Activations::Set(const runtime::Context& context, const ActivationForms& forms, const float* x,
                      int64_t batch, int64_t columns) {
  x_ = x;
  Begin(context, batch, columns);
  ForEachRow(context, batch, [&](int64_t row, int) { Quantize(context, forms, x + row * columns, row); });
}

void Activations::SetRows(const runtime::Context& context, const ActivationForms& forms, int64_t batch,
                          int64_t columns, const MakeRow& make) {
  if (rows_ != nullptr) {
    ForEachRow(context, batch, [&](int64_t row, int) { make(row, rows_ + row * columns); });
    Set(context, forms, rows_, batch, columns);
    return;
  }
  x_ = nullptr;
  Begin(context, batch, columns);
  ForEachRow(context, batch, [&](int64_t row, int worker) {
    float* const x = scratch_ + worker * max_columns_;
    make(row, x);
    Quantize(context, forms, x, row);
  });
}

kernels::ActivationRows Activations::For(formats::DType weight) const {
  const ActivationKind kind = kernels::ActivationKindFor(weight);
  kernels::ActivationRows rows{.kind = kind, .batch = batch_, .columns = columns_};
  if (kind == ActivationKind::kF32) {
    SLUICE_CHECK(x_ != nullptr);
    rows.f32 = x_;
    return rows;
  }
  const Form& form = forms_[static_cast<size_t>(kind)];
  SLUICE_CHECK(form.q != nullptr);
  rows.q = form.q;
  rows.scale = form.scale;
  rows.sums = form.sums;
  if (has_reach_) rows.reach = form.reach;
  return rows;
}

}  // namespace sluice::ops
