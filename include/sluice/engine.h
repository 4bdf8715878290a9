// Engine: the machine as Sluice uses it: threads, kernels, and the memory budget. Make one, then open models with it.
//
// Owns the worker threads and the ledger. One computation at a time; outlives the models and sessions made with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/result.h"
#include "runtime/context.h"

namespace sluice {

struct EngineOptions {
  int threads = 0;             // 0: one for each big core, within affinity and quota
  std::string kernels;         // a table's name ("scalar", "avx2" …); empty: the fastest that this processor has
  uint64_t memory_bytes = 0;   // the budget for everything; 0: what the machine has free, less a reserve
  Logger::Sink log;            // remarks; may be empty
};

class Engine {
 public:
  // Errors: kInvalidArgument for a number of threads out of range or unknown kernels (naming those there are),
  // kUnsupported for kernels that this processor lacks.
  static Result<std::unique_ptr<Engine>> Create(const EngineOptions& options);
  ~Engine();

  int threads() const;
  // Why so many, in one line: "4: one for each big core, with 8 cores that may be used".
  const std::string& threads_origin() const;
  std::string_view kernels() const;
  uint64_t budget_bytes() const;
  // Where the budget came from, in one line: "7.1 GiB: 8.9 GiB available less a reserve of 1.8 GiB".
  const std::string& budget_origin() const;
  const runtime::Context& context() const;

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
