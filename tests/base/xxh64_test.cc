#include "base/xxh64.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace sluice {
namespace {

uint64_t Hash(std::string_view text) {
  Xxh64 hash;
  hash.Add(std::as_bytes(std::span(text)));
  return hash.digest();
}

// Source: the reference implementation (libxxhash 0.8.1, XXH64 with seed 0).
TEST(Xxh64Test, IsTheSpecificationsHash) {
  EXPECT_EQ(Hash(""), 0xef46db3751d8e999u);
  EXPECT_EQ(Hash("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(Hash("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(Hash("12345678"), 0xd2d02f08cf7cfd4au);
  EXPECT_EQ(Hash(std::string(31, 'x')), 0x60dd0d01083b99f0u);
  EXPECT_EQ(Hash(std::string(32, 'x')), 0xe2df261fc2ec30ebu);
  EXPECT_EQ(Hash("The quick brown fox jumps over the lazy dog, twice: the quick brown fox."),
            0x05ddddec682d9f58u);
}

TEST(Xxh64Test, PiecesMakeNoDifference) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  const auto bytes = std::as_bytes(std::span(text));
  const uint64_t whole = Hash(text);
  for (size_t size = 1; size < 100; ++size) {
    Xxh64 hash;
    for (size_t at = 0; at < bytes.size(); at += size)
      hash.Add(bytes.subspan(at, std::min(size, bytes.size() - at)));
    EXPECT_EQ(hash.digest(), whole) << size;
  }
}

}  // namespace
}  // namespace sluice
