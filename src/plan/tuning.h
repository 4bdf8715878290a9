// Tuning: how a device's storage is best read, from what the probe measured.
//
// Pure functions; any thread.
#pragma once

#include "plan/device.h"
#include "weights/residency.h"

namespace sluice::plan {

// `options` with the size of reads, depth and back end that were measured as the fastest on this device; a
// back end that was asked for is kept. Of those that are as fast as the fastest, within what measuring
// explains, the one with the most reads under way: who computes is sometimes late to start the next. They
// fill half of the ring at most. Where nothing was measured the defaults stay.
//
// Where storage is slow, weights are to be left in the page cache for the next start, unless something else
// was asked for; planning does so where the budget has room for it.
weights::StoreOptions Tuned(const DeviceProfile& device, weights::StoreOptions options);

}  // namespace sluice::plan
