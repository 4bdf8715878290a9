// Context: what the machine offers, passed to whoever computes. There are no globals beside it.
//
// A view: the pool, ledger and clock belong to whoever made the Context (api/ for the program) and outlive it.
// Copied freely; one computation at a time may use a pool.
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "kernels/kernels.h"
#include "memory/ledger.h"
#include "parallel/thread_pool.h"
#include "platform/cpu_features.h"
#include "runtime/memory_pressure.h"

namespace sluice::runtime {

struct Context {
  platform::CpuFeatures cpu;
  const kernels::Kernels* kernels = nullptr;
  parallel::ThreadPool* pool = nullptr;
  memory::Ledger* ledger = nullptr;
  const Clock* clock = nullptr;
  MemoryPressure* pressure = nullptr;  // null: memory is never wanted back
  Logger log;
};

}  // namespace sluice::runtime
