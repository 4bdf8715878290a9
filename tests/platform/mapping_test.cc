#include "platform/mapping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "platform/memory_info.h"
#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

TEST(MappingTest, OfAFileOutlivesIt) {
  const TempFolder folder;
  const std::string path = folder.Write("f", "some bytes");
  auto file = File::Open(path);
  auto mapping = Mapping::OfFile(*file);
  ASSERT_TRUE(mapping) << mapping.error().message;
  *file = *File::Open(folder.Write("g", "x"));
  ASSERT_EQ(mapping->size(), 10u);
  EXPECT_EQ(std::memcmp(mapping->bytes().data(), "some bytes", 10), 0);
}

TEST(MappingTest, AnEmptyFileIsAnError) {
  const TempFolder folder;
  const auto file = File::Open(folder.Write("f", ""));
  EXPECT_EQ(Mapping::OfFile(*file).error().code, ErrorCode::kCorrupt);
}

TEST(MappingTest, AnonymousIsZeroAndWritable) {
  for (const PageSize pages : {PageSize::kBase, PageSize::kHuge}) {
    for (const size_t size : {size_t{1}, size_t{4097}, kHugePageBytes, kHugePageBytes + 5}) {
      auto mapping = Mapping::Anonymous(size, pages);
      ASSERT_TRUE(mapping) << mapping.error().message;
      EXPECT_EQ(mapping->size(), size);
      const auto bytes = mapping->writable_bytes();
      EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }));
      std::ranges::fill(bytes, std::byte{7});
      mapping->Touch();
      EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{7}; }));
      const size_t alignment = pages == PageSize::kHuge ? kHugePageBytes : 4096;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % alignment, 0u);
    }
  }
}

TEST(MappingTest, TouchTakesThePagesAndDestructionGivesThemBack) {
  constexpr size_t kSize = size_t{32} << 20;
  auto mapping = Mapping::Anonymous(kSize, PageSize::kHuge);
  ASSERT_TRUE(mapping);
  const uint64_t before = ReadProcessMemory().rss_bytes.value_or(0);
  mapping->Touch();
  EXPECT_GE(ReadProcessMemory().rss_bytes, before + kSize - (size_t{1} << 20));
  *mapping = Mapping();
  EXPECT_LE(ReadProcessMemory().rss_bytes.value_or(UINT64_MAX), before + (size_t{1} << 20));
}

TEST(MappingTest, TooMuchMemoryIsAnError) {
  for (const size_t size : {size_t{1} << 60, SIZE_MAX}) {
    const auto mapping = Mapping::Anonymous(size, PageSize::kHuge);
    ASSERT_FALSE(mapping);
    EXPECT_EQ(mapping.error().code, ErrorCode::kDoesNotFit);
  }
}

}  // namespace
}  // namespace sluice::platform
