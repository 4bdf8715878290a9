#include "plan/tuning.h"

#include <gtest/gtest.h>

namespace sluice::plan {
namespace {

using enum io::IoBackend;

// Storage with a way of reading beside the default one.
weights::StoreOptions With(const StorageRate& other, weights::StoreOptions options = {}) {
  DeviceProfile device;
  device.storage = {{kMiB, 8, kUring, 2.0e9}, {kMiB, 8, kPread, 1.9e9}, other};
  return Tuned(device, options);
}

TEST(TuningTest, TakesWhatIsClearlyFaster) {
  const auto tuned = With({512 * kKiB, 16, kPread, 2.5e9});
  EXPECT_EQ(tuned.read_bytes, 512 * kKiB);
  EXPECT_EQ(tuned.slab_bytes, weights::StoreOptions().slab_bytes);
  EXPECT_EQ(tuned.depth, 16);
  EXPECT_EQ(tuned.backend, kPread);
  // A slab is as large as a read at least.
  EXPECT_EQ(With({4 * kMiB, 4, kUring, 2.5e9}).slab_bytes, 4 * kMiB);
}

TEST(TuningTest, KeepsTheDefaultsOtherwise) {
  const weights::StoreOptions defaults;
  for (const StorageRate& other : {StorageRate{4 * kMiB, 4, kUring, 2.05e9},   // hardly faster
                                   StorageRate{4 * kMiB, 16, kUring, 4e9}}) {  // more than the ring can hold
    const auto tuned = With(other);
    EXPECT_EQ(tuned.read_bytes, defaults.read_bytes);
    EXPECT_EQ(tuned.depth, defaults.depth);
    EXPECT_EQ(tuned.backend, kUring);
  }
  EXPECT_EQ(Tuned(DeviceProfile(), {}).depth, defaults.depth);
}

TEST(TuningTest, OfTwoThatAreAsFastTheDeeperOne) {
  DeviceProfile device;
  device.storage = {{512 * kKiB, 8, kUring, 3.7e9}, {512 * kKiB, 16, kUring, 3.6e9}, {256 * kKiB, 16, kUring, 3.4e9}};
  const weights::StoreOptions tuned = Tuned(device, {});
  EXPECT_EQ(tuned.depth, 16);
  EXPECT_EQ(tuned.read_bytes, 512 * kKiB);
  // Than the defaults, too.
  EXPECT_EQ(With({512 * kKiB, 16, kUring, 1.95e9}).depth, 16);
}

TEST(TuningTest, SlowStorageLeavesWeightsInThePageCache) {
  using enum weights::PageCache;
  const auto page_cache = [](double rate, weights::PageCache asked) {
    DeviceProfile device;
    device.storage = {{kMiB, 8, kUring, rate}};
    return Tuned(device, {.page_cache = asked}).page_cache;
  };
  EXPECT_EQ(page_cache(0.3e9, kPassBy), kLeave);
  EXPECT_EQ(page_cache(2e9, kPassBy), kPassBy);
  EXPECT_EQ(page_cache(0.3e9, kEmptyBehind), kEmptyBehind);
  EXPECT_EQ(Tuned(DeviceProfile(), {}).page_cache, kPassBy);  // nothing is known
}

TEST(TuningTest, KeepsTheBackendThatWasAskedFor) {
  const auto tuned = With({2 * kMiB, 16, kPread, 4e9}, {.backend = kUring});
  EXPECT_EQ(tuned.backend, kUring);
  EXPECT_EQ(tuned.read_bytes, kMiB);
  EXPECT_EQ(With({2 * kMiB, 16, kPread, 4e9}, {.backend = kPread}).read_bytes, 2 * kMiB);
}

}  // namespace
}  // namespace sluice::plan
