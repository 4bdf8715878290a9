#include "kv/heavy_set.h"

#include <algorithm>

namespace sluice::kv {

void HeavySet::Choose(int layer, int which, int64_t length, std::span<int32_t> order,
                      std::span<uint8_t> gone) {
  const std::span<int32_t> positions = this->positions(layer);
  const std::span<float> scores = this->scores(layer, which);
  std::ranges::fill(gone, uint8_t{0});
  // Slots are in the order of positions: what may go is one run of them.
  const auto first = std::ranges::lower_bound(positions, static_cast<int32_t>(shape_.sinks));
  const auto last = std::ranges::lower_bound(positions, static_cast<int32_t>(length - shape_.recent()));
  const size_t begin = static_cast<size_t>(first - positions.begin());
  const size_t count = static_cast<size_t>(last - first);
  for (size_t i = 0; i < count; ++i) order[i] = static_cast<int32_t>(begin + i);
  // The least attention first, and the older of two alike; a NaN, from a broken model, goes before all.
  const auto lighter = [&](int32_t a, int32_t b) {
    const auto key = [&](int32_t slot) {
      const float score = scores[static_cast<size_t>(slot)];
      return score == score ? score : -1.0f;
    };
    return key(a) != key(b) ? key(a) < key(b) : a < b;
  };
  const auto middle = order.begin() + static_cast<ptrdiff_t>(shape_.evicted());
  std::nth_element(order.begin(), middle, order.begin() + static_cast<ptrdiff_t>(count), lighter);
  for (auto slot = order.begin(); slot != middle; ++slot) gone[static_cast<size_t>(*slot)] = 1;
}

}  // namespace sluice::kv
