#include "gguf/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice::gguf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Metadata, ScalarsComeBackAsTheyWent) {
  Metadata metadata;
  metadata.SetU32("u32", 4000000000u);
  metadata.SetI32("i32", -5);
  metadata.SetU64("u64", std::numeric_limits<uint64_t>::max());
  metadata.SetI64("i64", std::numeric_limits<int64_t>::min());
  metadata.SetF32("f32", 1.5f);
  metadata.SetBool("bool", true);
  metadata.SetString("string", std::string_view("a\0b", 3));
  EXPECT_EQ(*metadata.GetU32("u32"), 4000000000u);
  EXPECT_EQ(*metadata.GetI64("i32"), -5);
  EXPECT_EQ(*metadata.GetU64("u64"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(*metadata.GetI64("i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(*metadata.GetF32("f32"), 1.5f);
  EXPECT_TRUE(*metadata.GetBool("bool"));
  EXPECT_EQ(metadata.GetString("string")->size(), 3u);
  EXPECT_EQ(metadata.entries().size(), 7u);
}

TEST(Metadata, IntegersWidenWhenTheValueFits) {
  Metadata metadata;
  metadata.SetI32("small", 7);
  metadata.SetI64("large", int64_t{1} << 40);
  metadata.SetI32("negative", -1);
  EXPECT_EQ(*metadata.GetU32("small"), 7u);
  EXPECT_EQ(*metadata.GetF32("small"), 7.0f);
  EXPECT_EQ(*metadata.GetU64("large"), uint64_t{1} << 40);
  EXPECT_THAT(metadata.GetU32("large").error().message,
              HasSubstr("large: is 1099511627776, expected an unsigned"));
  EXPECT_THAT(metadata.GetU32("negative").error().message, HasSubstr("negative: is -1"));
  metadata.SetU64("huge", uint64_t{1} << 63);
  EXPECT_EQ(metadata.GetI64("huge").error().code, ErrorCode::kCorrupt);
}

TEST(Metadata, ErrorsNameKeyFoundAndExpected) {
  Metadata metadata;
  metadata.SetString("name", "x");
  metadata.SetF32("nan", std::nanf(""));
  metadata.SetU32s("list", std::vector<uint32_t>{1, 2});
  EXPECT_EQ(metadata.GetU32("absent").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(metadata.GetU32("absent").error().message, HasSubstr("absent"));
  EXPECT_EQ(metadata.GetU32("name").error().message,
            "metadata key name: is string, expected an unsigned integer");
  EXPECT_EQ(metadata.GetString("list").error().message,
            "metadata key list: is an array of 2 u32, expected a string");
  EXPECT_THAT(metadata.GetF32("nan").error().message, HasSubstr("finite"));
  EXPECT_FALSE(metadata.GetInts("name"));
  EXPECT_FALSE(metadata.GetFloats("list"));
  EXPECT_FALSE(metadata.GetStrings("list"));
  EXPECT_FALSE(metadata.GetBool("name"));
  EXPECT_EQ(*metadata.GetU32Or("absent", 9), 9u);
  EXPECT_FALSE(metadata.GetU32Or("name", 9));  // there, but of the wrong type
}

TEST(Metadata, Arrays) {
  Metadata metadata;
  metadata.SetI32s("ints", std::vector<int32_t>{-1, 2});
  metadata.SetF32s("floats", std::vector<float>{0.5f, -2.0f, 3.0f});
  metadata.SetStrings("strings", std::vector<std::string>{"", "héllo", "x"});
  const auto ints = *metadata.GetInts("ints");
  ASSERT_EQ(ints.size(), 2u);
  EXPECT_EQ(ints[0], -1);
  const auto floats = *metadata.GetFloats("floats");
  ASSERT_EQ(floats.size(), 3u);
  EXPECT_EQ(floats[1], -2.0f);
  EXPECT_THAT(*metadata.GetStrings("strings"), ElementsAre("", "héllo", "x"));
}

TEST(Metadata, PerLayerValues) {
  Metadata metadata;
  metadata.SetU32("same", 8);
  metadata.SetU32s("each", std::vector<uint32_t>{4, 8, 0});
  metadata.SetI32s("negative", std::vector<int32_t>{4, -8, 0});
  EXPECT_THAT(*metadata.GetU32PerLayer("same", 3), ElementsAre(8u, 8u, 8u));
  EXPECT_THAT(*metadata.GetU32PerLayer("each", 3), ElementsAre(4u, 8u, 0u));
  EXPECT_THAT(metadata.GetU32PerLayer("each", 4).error().message, HasSubstr("3 elements"));
  EXPECT_THAT(metadata.GetU32PerLayer("same", 4000000000u).error().message, HasSubstr("4000000000 layers"));
  EXPECT_THAT(metadata.GetU32PerLayer("negative", 3).error().message, HasSubstr("element 1 is -8"));
}

TEST(Metadata, SetReplacesInPlaceAndOldViewsLive) {
  Metadata metadata;
  metadata.SetString("b", "old");
  metadata.SetString("a", "first");
  const std::string_view old = *metadata.GetString("b");
  metadata.SetString("b", "new and longer");
  Metadata moved = std::move(metadata);
  EXPECT_EQ(old, "old");
  EXPECT_EQ(*moved.GetString("b"), "new and longer");
  EXPECT_EQ(moved.entries()[0].key, "b");
  moved.SetU32("c", 1);
  moved.Remove("b");
  moved.Remove("not there");
  ASSERT_EQ(moved.entries().size(), 2u);
  EXPECT_EQ(*moved.GetString("a"), "first");
  EXPECT_EQ(*moved.GetU32("c"), 1u);
  EXPECT_FALSE(moved.Has("b"));
}

}  // namespace
}  // namespace sluice::gguf
