#include "weights/residency.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/units.h"
#include "weights/small_model.h"

namespace sluice::weights {
namespace {

class ResidencyTest : public testing::Test {
 protected:
  SmallModel model_{8};
  std::vector<Slab> slabs_ = CutSlabs(model_.schedule(), 12'000);
};

TEST_F(ResidencyTest, NothingAndEverythingCanBePinned) {
  EXPECT_EQ(std::ranges::count(ChoosePinned(slabs_, 0), true), 0);
  EXPECT_EQ(std::ranges::count(ChoosePinned(slabs_, UINT64_MAX), true), static_cast<int64_t>(slabs_.size()));
}

TEST_F(ResidencyTest, PinnedSlabsFillTheirBytesAndNoMore) {
  for (int percent = 5; percent < 100; percent += 5) {
    const uint64_t bytes = model_.size_bytes() * static_cast<uint64_t>(percent) / 100;
    const uint64_t used = LayOutArena(slabs_, ChoosePinned(slabs_, bytes)).size_bytes;
    EXPECT_LE(used, bytes);
    // With slabs of few pages, what rounding takes changes from one choice to the next.
    EXPECT_GE(used + 80'000, bytes);
  }
}

// Runs of streamed slabs are short, so that computing on pinned ones hides their reads.
TEST_F(ResidencyTest, PinnedSlabsAreSpreadEvenly) {
  const std::vector<bool> pinned = ChoosePinned(slabs_, model_.size_bytes() / 2);
  int run = 0;
  for (const bool stays : pinned) {
    run = stays ? 0 : run + 1;
    EXPECT_LE(run, 4);
  }
}

TEST_F(ResidencyTest, ExtentsLieAtTheirOffsetsWithinAPageAndDoNotOverlap) {
  for (const uint64_t bytes : {uint64_t{100'000}, uint64_t{400'000}, UINT64_MAX}) {
    const std::vector<bool> pinned = ChoosePinned(slabs_, bytes);
    const ArenaLayout layout = LayOutArena(slabs_, pinned);
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (size_t i = 0; i < slabs_.size(); ++i) {
      if (!pinned[i]) continue;
      for (size_t e = 0; e < static_cast<size_t>(slabs_[i].n_extents); ++e) {
        const Extent& extent = slabs_[i].extents[e];
        EXPECT_EQ(layout.offsets[i][e] % 4096, extent.offset % 4096);
        ranges.emplace_back(layout.offsets[i][e], layout.offsets[i][e] + extent.size_bytes);
      }
    }
    std::ranges::sort(ranges);
    for (size_t i = 1; i < ranges.size(); ++i) EXPECT_LE(ranges[i - 1].second, ranges[i].first);
    EXPECT_LE(ranges.back().second, layout.size_bytes);
  }
}

// A read of a few pages takes about as long as one of a whole block.
TEST(BlockBytes, CutsAnExtentIntoEqualReads) {
  EXPECT_EQ(BlockBytes(8 * kKiB, 512 * kKiB), 8 * kKiB);
  EXPECT_EQ(BlockBytes(512 * kKiB, 512 * kKiB), 512 * kKiB);
  EXPECT_EQ(BlockBytes(1032 * kKiB, 512 * kKiB), 516 * kKiB);
  EXPECT_EQ(BlockBytes(1036 * kKiB, 512 * kKiB), 520 * kKiB);
  EXPECT_EQ(BlockBytes(764 * kKiB, 512 * kKiB), 764 * kKiB);
  EXPECT_EQ(BlockBytes(772 * kKiB, 512 * kKiB), 388 * kKiB);
}

}  // namespace
}  // namespace sluice::weights
