#include "weights/schedule.h"

#include <gtest/gtest.h>

#include "weights/small_model.h"

namespace sluice::weights {
namespace {

// Every row of every matrix is in one slab, in order; paired matrices share their rows.
TEST(CutSlabsTest, EveryRowIsInOneSlab) {
  const SmallModel model(3);
  for (const uint64_t slab_bytes : {uint64_t{1}, uint64_t{7'000}, uint64_t{30'000}, uint64_t{100'000'000}}) {
    SCOPED_TRACE(slab_bytes);
    const std::vector<Slab> slabs = CutSlabs(model.schedule(), slab_bytes);
    std::vector<std::array<int64_t, kMaxMatrices>> next(model.schedule().operations.size());
    int last_operation = 0;
    for (const Slab& slab : slabs) {
      EXPECT_GE(slab.operation, last_operation);
      last_operation = slab.operation;
      const Operation& operation = model.schedule().operations[static_cast<size_t>(slab.operation)];
      int64_t rows = 0;
      for (int e = 0; e < slab.n_extents; ++e) {
        const Extent& extent = slab.extents[static_cast<size_t>(e)];
        EXPECT_EQ(extent.first_row, next[static_cast<size_t>(slab.operation)][static_cast<size_t>(extent.matrix)]);
        next[static_cast<size_t>(slab.operation)][static_cast<size_t>(extent.matrix)] += extent.rows;
        EXPECT_EQ(extent.size_bytes, static_cast<uint64_t>(extent.rows) * SmallModel::kColumns * 4);
        rows += extent.rows;
      }
      if (operation.paired) {
        EXPECT_EQ(slab.n_extents, operation.count);
        EXPECT_EQ(slab.extents[0].rows, slab.extents[1].rows);
        rows /= 2;
      }
      EXPECT_EQ(slab.rows, rows);
    }
    for (size_t o = 0; o < next.size(); ++o) {
      const Operation& operation = model.schedule().operations[o];
      for (int m = 0; m < operation.count; ++m)
        EXPECT_EQ(next[o][static_cast<size_t>(m)], operation.matrices[static_cast<size_t>(m)].rows);
    }
  }
}

// A slab that a fraction of a row was missing from once got another extent of the same matrix, and more than it has room for.
TEST(CutSlabsTest, ASlabHasOneExtentOfEachMatrixAtMost) {
  const SmallModel model(2);
  for (uint64_t slab_bytes = 1; slab_bytes < 60'000; slab_bytes += 37) {
    for (const Slab& slab : CutSlabs(model.schedule(), slab_bytes)) {
      for (int e = 1; e < slab.n_extents; ++e) {
        ASSERT_GT(slab.extents[static_cast<size_t>(e)].matrix, slab.extents[static_cast<size_t>(e - 1)].matrix)
            << slab_bytes;
      }
    }
  }
}

TEST(CutSlabsTest, SlabsOfAnOperationAreOfAboutTheSameSize) {
  const SmallModel model(2);
  const std::vector<Slab> slabs = CutSlabs(model.schedule(), 40'000);
  constexpr uint64_t kPanelBytes = kPanelRows * SmallModel::kColumns * 4;
  for (const Slab& slab : slabs) EXPECT_LE(slab.size_bytes(), 40'000 + 2 * kPanelBytes) << slab.operation;
}

}  // namespace
}  // namespace sluice::weights
