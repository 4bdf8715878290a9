// Tracer: is told how long each step of a forward pass took. Where there is none, a step costs the test of a pointer.
//
// Belongs to whoever asked for it and outlives what it is handed to. All calls come from the thread that runs the pass,
// between its steps.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace sluice::runtime {

class Tracer {
 public:
  virtual ~Tracer() = default;
  // A step that began and ended at these times of the context's clock. `step` is a literal, such as "attention";
  // layer −1 belongs to no layer.
  virtual void OnStep(std::string_view step, int layer, double start_seconds, double end_seconds) = 0;
  // A whole pass over `rows` tokens, after its steps. Passes that were stopped or failed are not told of.
  virtual void OnPass(int64_t rows, double start_seconds, double end_seconds) = 0;
};

// Times steps that follow each other: each ends where Done says so, and there the next one begins.
class StepTimer {
 public:
  StepTimer(Tracer* tracer, const Clock* clock, int layer)
      : tracer_(tracer), clock_(clock), layer_(layer), start_(tracer == nullptr ? 0 : clock->NowSeconds()) {}

  void Done(std::string_view step) {
    if (tracer_ == nullptr) return;
    const double now = clock_->NowSeconds();
    tracer_->OnStep(step, layer_, start_, now);
    start_ = now;
  }

 private:
  Tracer* tracer_;
  const Clock* clock_;
  int layer_;
  double start_;
};

}  // namespace sluice::runtime
