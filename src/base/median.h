// The middle of some samples.
#pragma once

#include <algorithm>
#include <vector>

namespace sluice {

// The mean of the two in the middle where they are even in number; 0 without values.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace sluice
