// Pressure: notices that memory is taken away while a model runs (a neighbour grows, a limit is lowered),
// before the kernel has to kill somebody.
//
// When less than a low mark can still be taken, enough is wanted back to stand at a second, higher mark: so
// it is not wanted again at once. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "runtime/memory_pressure.h"

namespace sluice::plan {

struct PressureMarks {
  uint64_t low_bytes = 0;     // below this, memory is wanted back …
  uint64_t enough_bytes = 0;  // … until this much can be taken
};
// For a process that has taken nothing yet, when `available_bytes` can be taken and `budget_bytes` are going
// to be. What is left then is for others; pressure is when a quarter of that is left, at most 256 MiB. A
// budget that leaves nothing is the user's choice: then the marks are as low as they are of use.
PressureMarks MarksFor(uint64_t available_bytes, uint64_t budget_bytes);

class PressureWatch final : public runtime::MemoryPressure {
 public:
  // What can still be taken, as platform::MemoryGauge reads it.
  using Gauge = std::function<uint64_t()>;

  // The clock outlives this.
  PressureWatch(const Clock& clock, PressureMarks marks, Gauge gauge)
      : clock_(clock), marks_(marks), gauge_(std::move(gauge)) {}

  // Looks at most every 100 ms, and wants nothing in between.
  uint64_t WantedBytes() override;

 private:
  const Clock& clock_;
  const PressureMarks marks_;
  const Gauge gauge_;
  double next_look_ = 0;
};

}  // namespace sluice::plan
