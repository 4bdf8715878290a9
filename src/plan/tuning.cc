#include "plan/tuning.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice::plan {

namespace {

// A smaller difference is what measuring alone explains.
constexpr double kAsFast = 1.05;
// Bytes per second. Faster storage gives a model past the page cache about as soon as the page cache itself does.
constexpr double kSlowStorage = 1e9;

}  // namespace

weights::StoreOptions Tuned(const DeviceProfile& device, weights::StoreOptions options) {
  const double fastest = device.BestStorage().bytes_per_second;
  if (fastest > 0 && fastest < kSlowStorage && options.page_cache == weights::PageCache::kPassBy)
    options.page_cache = weights::PageCache::kLeave;
  const bool any_backend = options.backend == io::IoBackend::kAuto;
  std::vector<StorageRate> rates;
  double best = 0;
  for (const StorageRate& rate : device.storage) {
    if (!any_backend && rate.backend != options.backend) continue;
    if (rate.block_bytes * static_cast<uint64_t>(rate.depth) > options.ring_bytes / 2) continue;
    rates.push_back(rate);
    best = std::max(best, rate.bytes_per_second);
  }
  if (rates.empty()) return options;
  std::erase_if(rates, [&](const StorageRate& rate) { return rate.bytes_per_second * kAsFast < best; });
  const StorageRate& deepest = *std::ranges::max_element(rates, {}, [](const StorageRate& rate) {
    return std::pair(rate.depth, rate.bytes_per_second);
  });
  options.read_bytes = deepest.block_bytes;
  options.slab_bytes = std::max(options.slab_bytes, deepest.block_bytes);
  options.depth = deepest.depth;
  if (any_backend) options.backend = deepest.backend;
  return options;
}

}  // namespace sluice::plan
