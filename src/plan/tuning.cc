#include "plan/tuning.h"

namespace sluice::plan {

namespace {

constexpr uint64_t kSmallestSlab = kMiB;
constexpr double kWorthIt = 1.1;

}  // namespace

weights::StoreOptions Tuned(const DeviceProfile& device, weights::StoreOptions options) {
  const bool any_backend = options.backend == io::IoBackend::kAuto;
  StorageRate best, as_it_is;
  for (const StorageRate& rate : device.storage) {
    if (!any_backend && rate.backend != options.backend) continue;
    if (rate.block_bytes < kSmallestSlab) continue;
    if (rate.block_bytes * static_cast<uint64_t>(rate.depth) > options.ring_bytes / 2) continue;
    if (rate.bytes_per_second > best.bytes_per_second) best = rate;
    // kAuto is io_uring where that is measured, which comes first.
    if (rate.block_bytes == options.slab_bytes && rate.depth == options.depth && as_it_is.bytes_per_second == 0)
      as_it_is = rate;
  }
  if (best.bytes_per_second <= kWorthIt * as_it_is.bytes_per_second) return options;
  options.slab_bytes = best.block_bytes;
  options.depth = best.depth;
  if (any_backend) options.backend = best.backend;
  return options;
}

}  // namespace sluice::plan
