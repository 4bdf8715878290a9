// Result, ByteReader, AlignedBuffer and the hash: small enough for one file.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/byte_reader.h"
#include "base/hash.h"
#include "base/result.h"

namespace sluice {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Fail(ErrorCode::kInvalidArgument, "{} is odd", n);
  return n / 2;
}
Result<std::string> Quarter(int n) {
  SLUICE_TRY_ASSIGN(const int half, Half(n));
  SLUICE_TRY_ASSIGN(const int quarter, Half(half));
  return std::to_string(quarter);
}
Status BothEven(int a, int b) {
  SLUICE_TRY(Half(a));
  SLUICE_TRY(Half(b));
  return {};
}

TEST(ResultTest, CarriesAValueOrAnError) {
  EXPECT_EQ(*Quarter(12), "3");
  const Result<std::string> bad = Quarter(6);
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(bad.error().message, "3 is odd");
  EXPECT_EQ(Annotate(bad.error(), "tensor x").message, "tensor x: 3 is odd");

  EXPECT_TRUE(BothEven(2, 4));
  EXPECT_EQ(BothEven(2, 5).error().message, "5 is odd");
}

TEST(ResultTest, HoldsWhatCanOnlyMove) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  ASSERT_TRUE(result);
  EXPECT_EQ(**result, 7);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
}

TEST(ResultDeathTest, TheWrongSideIsABug) {
  const Result<int> bad = Half(3);
  EXPECT_DEATH((void)*bad, "check failed");
  const Result<int> good = Half(4);
  EXPECT_DEATH((void)good.error(), "check failed");
  EXPECT_DEATH((void)Status().error(), "check failed");
}

TEST(ByteReaderTest, ReadsLittleEndianNumbersInTurn) {
  const std::array<unsigned char, 10> bytes{0x01, 0x02, 0x03, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x80};
  ByteReader reader(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(*reader.Read<uint8_t>("a"), 1);
  EXPECT_EQ(*reader.Read<uint16_t>("b"), 0x0302);
  EXPECT_EQ(*reader.Read<int32_t>("c"), -1);
  EXPECT_EQ(reader.offset(), 7u);
  const auto rest = reader.ReadBytes(2, "d");
  ASSERT_TRUE(rest);
  EXPECT_EQ((*rest)[1], std::byte{0});
  EXPECT_EQ(reader.remaining(), 1u);
}

TEST(ByteReaderTest, NamesWhatIsMissingAndStaysWhereItWas) {
  const std::array<unsigned char, 6> bytes{};
  ByteReader reader(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(reader.Read<uint32_t>("version"));
  const auto number = reader.Read<uint64_t>("tensor count");
  ASSERT_FALSE(number);
  EXPECT_EQ(number.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(number.error().message, "tensor count at byte 4: needs 8 bytes, 2 are left");
  EXPECT_EQ(reader.offset(), 4u);
  for (const uint64_t size : {uint64_t{3}, uint64_t{1} << 63, ~uint64_t{0}})
    EXPECT_FALSE(reader.ReadBytes(size, "key"));
  EXPECT_TRUE(reader.ReadBytes(2, "key"));
  EXPECT_TRUE(reader.ReadBytes(0, "nothing"));
  EXPECT_FALSE(reader.Read<uint8_t>("end"));
  EXPECT_FALSE(ByteReader({}).Read<uint8_t>("empty"));
}

TEST(AlignedBufferTest, IsAlignedAndZero) {
  for (const size_t alignment : {64u, 4096u}) {
    AlignedBuffer buffer(1000, alignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % alignment, 0u);
    EXPECT_EQ(buffer.size(), 1000u);
    for (const std::byte b : buffer.bytes()) ASSERT_EQ(b, std::byte{0});
    EXPECT_EQ(buffer.as<float>().size(), 250u);
    EXPECT_EQ(std::as_const(buffer).as<double>().size(), 125u);
  }
}

TEST(AlignedBufferTest, MovingLeavesNothingBehind) {
  AlignedBuffer a(128);
  a.as<int>()[3] = 42;
  const std::byte* const address = a.data();
  AlignedBuffer b(std::move(a));
  EXPECT_EQ(b.data(), address);
  EXPECT_EQ(a.size(), 0u);  // NOLINT: the state after a move is part of the contract
  EXPECT_EQ(a.data(), nullptr);
  a = std::move(b);
  EXPECT_EQ(a.as<int>()[3], 42);
  EXPECT_EQ(b.size(), 0u);
  EXPECT_EQ(AlignedBuffer().size(), 0u);
  EXPECT_NE(AlignedBuffer(0).data(), nullptr);
}

// Source of the expected values: the published FNV-1a test vectors.
TEST(HashTest, IsFnv1a) {
  const auto hash = [](std::string_view text) { return HashBytes(std::as_bytes(std::span(text))); };
  EXPECT_EQ(hash(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(hash("a"), 0xaf63dc4c8601ec8cull);
  EXPECT_EQ(hash("foobar"), 0x85944171f73967e8ull);
  EXPECT_EQ(HashBytes(std::as_bytes(std::span("bar", 3)), hash("foo")), hash("foobar"));
}

TEST(HashTest, FloatsByTheirBitsAndAllNaNsAlike) {
  const auto hash = [](float value) { return HashFloats(std::span(&value, 1)); };
  EXPECT_NE(hash(0.0f), hash(-0.0f));
  EXPECT_EQ(hash(std::nanf("")), hash(-std::nanf("12")));
  EXPECT_NE(hash(1.0f), hash(std::nextafter(1.0f, 2.0f)));
}

}  // namespace
}  // namespace sluice
