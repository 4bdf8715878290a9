// Allocation: one option for each item, so that the sum of their damages is smallest and the sum of their
// bytes no more than a budget (the multiple-choice knapsack).
//
// The Lagrangian's multiplier gives a bound that no choice can beat and an order of what to try; a
// depth-first search over what can still be better then finds the best, or, when it takes too long, something
// that is known to be close. Deterministic. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace sluice::quantize {

struct AllocationOption {
  uint64_t bytes = 0;
  double damage = 0;  // ≥ 0, finite
};
using AllocationItem = std::vector<AllocationOption>;  // at least one option

struct Allocation {
  std::vector<size_t> chosen;  // the index of each item's option
  uint64_t bytes = 0;
  double damage = 0;
  double bound = 0;      // no choice within the budget has less damage than this
  bool optimal = false;  // proved: nothing is better
};

// Error: kDoesNotFit when even the smallest options take more than the budget, with both numbers.
Result<Allocation> Allocate(std::span<const AllocationItem> items, uint64_t budget_bytes);

}  // namespace sluice::quantize
