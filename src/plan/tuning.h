// Tuning: how a device's storage is best read, from what the probe measured.
//
// Pure functions; any thread.
#pragma once

#include "plan/device.h"
#include "weights/residency.h"

namespace sluice::plan {

// `options` with the slab size, depth and back end that were measured as the fastest on this device. A back end that was
// asked for is kept. So are the defaults unless something else is a tenth faster, which measuring alone doesn't explain.
// Slabs are of 1 MiB at least, and reads under way fill half of the ring at most.
weights::StoreOptions Tuned(const DeviceProfile& device, weights::StoreOptions options);

}  // namespace sluice::plan
