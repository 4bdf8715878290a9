#include "plan/pressure.h"

#include <algorithm>

#include "base/units.h"

namespace sluice::plan {

namespace {

constexpr double kSecondsBetweenLooks = 0.1;
constexpr uint64_t kLowest = 16 * kMiB, kHighest = 256 * kMiB;

}  // namespace

PressureMarks MarksFor(uint64_t available_bytes, uint64_t budget_bytes) {
  const uint64_t left = available_bytes - std::min(available_bytes, budget_bytes);
  const uint64_t low = std::clamp(left / 4, kLowest, kHighest);
  return {low, low + low / 2};
}

uint64_t PressureWatch::WantedBytes() {
  const double now = clock_.NowSeconds();
  if (now < next_look_) return 0;
  next_look_ = now + kSecondsBetweenLooks;
  const uint64_t available = gauge_();
  return available < marks_.low_bytes ? marks_.enough_bytes - available : 0;
}

}  // namespace sluice::plan
