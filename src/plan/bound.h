// Bound: what a stretch of work waited for, from what was measured (docs/observation.md).
//
// The workers' time is cut into three: waiting for storage, as long as memory takes at least to deliver what
// was gone through, and the rest, which is computing. What could not be measured is not guessed: two parts
// are then given as one.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::plan {

struct MeasuredWork {
  double seconds = 0;  // from its beginning to its end
  int workers = 1;
  std::optional<double> stall_seconds;  // weights::StoreStats::stall_seconds; none where nobody counts it
  double memory_bytes = 0;              // weights, keys and values that the passes went through
  std::optional<double>
      memory_bytes_per_second;  // that memory delivers to all workers; none where it was not measured
};

// Shares of the workers' time, each 0 … 1. A share that is missing is part of `together`.
struct Bound {
  std::optional<double> storage, memory, compute;
  double together = 0;
  std::string_view why;  // some parts could not be told apart

  bool known() const { return storage || memory || compute || together > 0; }
  // "bound by: storage 71 %, memory 20 %, compute 9 %", or with what could not be told apart, and why.
  std::string Line() const;
};

// Nothing is known of work that took no time.
Bound FindBound(const MeasuredWork& work);

}  // namespace sluice::plan
