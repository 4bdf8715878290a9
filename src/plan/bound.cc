#include "plan/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sluice::plan {

namespace {

// Two readings of one memory's speed differ by about so much; a share that is too large by more is no share.
constexpr double kSlack = 1.15;

}  // namespace

Bound FindBound(const MeasuredWork& work) {
  Bound bound;
  if (!(work.seconds > 0) || work.workers < 1) return bound;
  double rest = 1;
  if (work.stall_seconds) {
    bound.storage = std::clamp(*work.stall_seconds / (work.seconds * work.workers), 0.0, 1.0);
    rest -= *bound.storage;
  } else {
    bound.why = "pages of mapped weights come when they are touched";
  }
  if (work.memory_bytes_per_second.value_or(0) > 0) {
    const double share = work.memory_bytes / *work.memory_bytes_per_second / work.seconds;
    if (share <= rest * kSlack) {
      bound.memory = std::min(share, rest);
      rest -= *bound.memory;
    } else {
      bound.why =
          "weights came faster than memory was measured to read: they lie in caches, or it was slower then";
    }
  } else if (bound.storage) {
    bound.why = "`sluice plan` has not measured this device's memory yet";
  }
  if (bound.storage && bound.memory) {
    bound.compute = rest;
  } else {
    bound.together = rest;
  }
  return bound;
}

std::string Bound::Line() const {
  if (!known()) return "bound by: unknown, nothing was computed";
  // Whole percents that come to 100: the last part takes what rounding left.
  int left = 100;
  const auto percent = [&left](double share) {
    const int rounded = std::min(left, static_cast<int>(std::lround(100 * share)));
    left -= rounded;
    return rounded;
  };
  std::string line = "bound by: ";
  if (storage) line += fmt::format("storage {} %, ", percent(*storage));
  if (memory) line += fmt::format("memory {} %, ", percent(*memory));
  if (compute) return line + fmt::format("compute {} %", left);
  if (storage) return line + fmt::format("memory and compute {} % (not told apart: {})", left, why);
  if (memory) return line + fmt::format("storage and compute {} % (not told apart: {})", left, why);
  return line + fmt::format("storage, memory and compute (not told apart: {})", why);
}

}  // namespace sluice::plan
