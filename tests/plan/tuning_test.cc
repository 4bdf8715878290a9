#include "plan/tuning.h"

#include <gtest/gtest.h>

namespace sluice::plan {
namespace {

using enum io::IoBackend;

// Storage with a way of reading beside the default one.
weights::StoreOptions With(const StorageRate& other, weights::StoreOptions options = {}) {
  DeviceProfile device;
  device.storage = {{2 * kMiB, 8, kUring, 2.0e9}, {2 * kMiB, 8, kPread, 1.9e9}, other};
  return Tuned(device, options);
}

TEST(TuningTest, TakesWhatIsClearlyFaster) {
  const auto tuned = With({kMiB, 16, kPread, 2.5e9});
  EXPECT_EQ(tuned.slab_bytes, kMiB);
  EXPECT_EQ(tuned.depth, 16);
  EXPECT_EQ(tuned.backend, kPread);
}

TEST(TuningTest, KeepsTheDefaultsOtherwise) {
  const weights::StoreOptions defaults;
  for (const StorageRate& other : {StorageRate{4 * kMiB, 4, kUring, 2.1e9},      // hardly faster
                                   StorageRate{4 * kMiB, 16, kUring, 4e9},       // more than the ring can hold
                                   StorageRate{512 * kKiB, 16, kUring, 4e9}}) {  // too small to compute on
    const auto tuned = With(other);
    EXPECT_EQ(tuned.slab_bytes, defaults.slab_bytes);
    EXPECT_EQ(tuned.depth, defaults.depth);
    EXPECT_EQ(tuned.backend, kAuto);
  }
  EXPECT_EQ(Tuned(DeviceProfile(), {}).depth, defaults.depth);
}

TEST(TuningTest, KeepsTheBackendThatWasAskedFor) {
  const auto tuned = With({kMiB, 16, kPread, 4e9}, {.backend = kUring});
  EXPECT_EQ(tuned.backend, kUring);
  EXPECT_EQ(tuned.slab_bytes, 2 * kMiB);
  EXPECT_EQ(With({kMiB, 16, kPread, 4e9}, {.backend = kPread}).slab_bytes, kMiB);
}

}  // namespace
}  // namespace sluice::plan
