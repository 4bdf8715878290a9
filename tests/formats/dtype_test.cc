#include "formats/dtype.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace sluice::formats {
namespace {

TEST(DType, EveryIdNameAndSizeIsFound) {
  std::set<uint32_t> ids;
  for (const DTypeTraits& traits : AllDTypes()) {
    const auto id = static_cast<uint32_t>(traits.dtype);
    EXPECT_TRUE(ids.insert(id).second) << traits.name;
    EXPECT_EQ(FindDType(id), &traits);
    EXPECT_EQ(FindDTypeByName(traits.name), &traits);
    EXPECT_EQ(RowBytes(traits.dtype, 3 * traits.block_length), 3 * traits.block_bytes);
  }
  EXPECT_EQ(ids.size(), 33u);
  EXPECT_EQ(FindDTypeByName("q4_k"), FindDType(12));
}

// P11: retired ids (4, 5, 31–33, 36–38), Q8_1 and Q8_K (never in files), and ids of forks are no types.
TEST(DType, UnknownIdsAreNull) {
  for (uint32_t id : {4u, 5u, 9u, 15u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 137u, 255u,
                      std::numeric_limits<uint32_t>::max()}) {
    EXPECT_EQ(FindDType(id), nullptr) << id;
  }
  EXPECT_EQ(FindDTypeByName("Q4_0_4_8"), nullptr);
  EXPECT_EQ(FindDTypeByName(""), nullptr);
}

}  // namespace
}  // namespace sluice::formats
