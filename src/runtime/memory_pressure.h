// MemoryPressure: whether the system wants memory back while a model runs. A seam, as the clock is one: what
// to think of the system's figures is decided in plan/ (pressure.h), what to give in weights/.
#pragma once

#include <cstdint>

namespace sluice::runtime {

class MemoryPressure {
 public:
  virtual ~MemoryPressure() = default;
  // How much memory ought to be given back now; 0 nearly always. Asked before each operation of a pass, by
  // the thread that runs it: cheap, and allocates nothing.
  virtual uint64_t WantedBytes() = 0;
};

}  // namespace sluice::runtime
