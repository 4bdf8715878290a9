// Files made to do harm, or harmed: each is refused by name, quickly, and with little memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <limits>

#include "gguf/builder.h"
#include "gguf/reader.h"

namespace sluice::gguf {
namespace {

using ::testing::AllOf;
using testing::Bytes;
using ::testing::HasSubstr;
using testing::ModelBuilder;
using testing::OpenBytes;
namespace raw = testing::raw;

constexpr uint32_t kF32 = 0, kI8 = 24;

std::string ErrorOf(const Bytes& file, Purpose purpose = Purpose::kUse) {
  const auto opened = OpenBytes(file, purpose);
  return opened ? "" : opened.error().message;
}

std::vector<std::string> ProblemsOf(const Bytes& file) {
  std::vector<std::string> messages;
  const auto opened = OpenBytes(file, Purpose::kInspect);
  EXPECT_TRUE(opened) << opened.error().message;
  if (opened) {
    for (const Problem& problem : opened->problems()) messages.push_back(problem.message);
  }
  return messages;
}

// P01: dimensions whose product wraps.
TEST(Hostile, DimensionsThatWrap) {
  constexpr uint64_t kMaxI64 = std::numeric_limits<int64_t>::max();
  const auto file = [](std::initializer_list<uint64_t> dims, uint32_t type) {
    return raw::File({.infos = {raw::Info("t", dims, type, 0)}});
  };
  for (const uint32_t type : {kF32, kI8, 8u, 12u}) {
    for (const Purpose purpose : {Purpose::kUse, Purpose::kInspect}) {
      EXPECT_THAT(ErrorOf(file({kMaxI64, 2}, type), purpose), HasSubstr("tensor t"));
      EXPECT_THAT(ErrorOf(file({uint64_t{1} << 32, uint64_t{1} << 32}, type), purpose),
                  HasSubstr("tensor t"));
      EXPECT_THAT(ErrorOf(file({uint64_t{1} << 63, 1}, type), purpose), HasSubstr("tensor t"));
      EXPECT_THAT(ErrorOf(file({256, ~uint64_t{0}}, type), purpose), HasSubstr("tensor t"));
    }
  }
  EXPECT_THAT(ErrorOf(file({(uint64_t{1} << 42) + 1, 1152}, kF32)), HasSubstr("tensor t: needs"));
  EXPECT_THAT(ErrorOf(file({uint64_t{1} << 61, 1}, kF32)),
              HasSubstr("tensor t"));  // elements fit, bytes don't
  EXPECT_THAT(ErrorOf(file({0}, kF32)), HasSubstr("dimension 0 is 0"));
  EXPECT_THAT(ErrorOf(file({1, 1, 1, 1, 1}, kF32)), HasSubstr("tensor t: has 5 dimensions"));
  EXPECT_THAT(ErrorOf(file({100}, 12)), HasSubstr("not whole blocks"));
}

TEST(Hostile, SumOfSizesThatWraps) {
  std::vector<Bytes> infos;
  for (int i = 0; i < 8; ++i) infos.push_back(raw::Info(fmt::format("t{}", i), {uint64_t{1} << 62}, kI8, 0));
  const Bytes file = raw::File({.infos = infos});
  EXPECT_THAT(ErrorOf(file), HasSubstr("tensor t0: needs 4611686018427387904 bytes"));
  const auto opened = OpenBytes(file, Purpose::kInspect);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->tensor_bytes(), std::numeric_limits<uint64_t>::max());
}

// P04: lengths and counts that the file cannot hold.
TEST(Hostile, LengthsThatCannotBe) {
  const auto key_of_length = [](uint64_t length) {
    return raw::File({.pairs = {raw::Join({raw::Number(length), raw::Text("k")})}});
  };
  const auto string_of_length = [](uint64_t length) {
    return raw::File({.pairs = {raw::Pair("key", ValueType::kString, raw::Number(length))}});
  };
  const auto array = [](ValueType type, uint64_t count) {
    return raw::File({.pairs = {raw::Pair("key", ValueType::kArray, raw::Array(type, count, {}))}});
  };
  for (const uint64_t length : {uint64_t{1} << 63, ~uint64_t{0}, uint64_t{1} << 32, uint64_t{1000}}) {
    EXPECT_THAT(ErrorOf(key_of_length(length)), HasSubstr("metadata pair 0: key at byte"));
    EXPECT_THAT(ErrorOf(string_of_length(length)), HasSubstr("metadata key key: string at byte"));
    for (const ValueType type : {ValueType::kU8, ValueType::kF64, ValueType::kString}) {
      EXPECT_THAT(ErrorOf(array(type, length)), HasSubstr("metadata key key: array at byte"));
    }
    EXPECT_NE(ErrorOf(raw::File({.tensor_count = length})), "");
    EXPECT_NE(ErrorOf(raw::File({.pair_count = length})), "");
  }
  EXPECT_NE(ErrorOf(raw::File({.tensor_count = std::numeric_limits<uint64_t>::max() / sizeof(Tensor) - 1})),
            "");
  EXPECT_THAT(ErrorOf(raw::File({.pairs = {raw::Pair("key", ValueType{77}, {})}})),
              HasSubstr("unknown value type 77"));
  EXPECT_THAT(ErrorOf(array(ValueType::kArray, 1)), HasSubstr("array of arrays"));
}

// A source that claims to be enormous, as a sparse file may be, and is zeros behind its front.
class EndlessSource final : public ByteSource {
 public:
  explicit EndlessSource(Bytes front) : front_(std::move(front)) {}
  uint64_t size() const override { return uint64_t{1} << 50; }
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    std::ranges::fill(out, std::byte{0});
    if (offset < front_.size()) {
      const size_t size = std::min<size_t>(out.size(), front_.size() - offset);
      std::copy_n(front_.begin() + static_cast<ptrdiff_t>(offset), size, out.begin());
    }
    return {};
  }

 private:
  Bytes front_;
};

TEST(Hostile, AHeaderHasALimitEvenInAnEnormousFile) {
  const auto error = [](Bytes front) {
    const auto file =
        GgufFile::Open("x", Purpose::kUse, [&](const std::string&) -> Result<std::unique_ptr<ByteSource>> {
          return std::unique_ptr<ByteSource>(std::make_unique<EndlessSource>(front));
        });
    return file ? ErrorCode::kIo : file.error().code;
  };
  const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  EXPECT_EQ(error(raw::File({.pairs = {raw::Pair("k", ValueType::kString, raw::Number(uint64_t{1} << 40))}})),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(error(raw::File({.pairs = {raw::Pair("k", ValueType::kArray,
                                                 raw::Array(ValueType::kU8, uint64_t{1} << 45, {}))}})),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(error(raw::File({.pair_count = kMaxKeys + 1})), ErrorCode::kCorrupt);
  // Empty strings without end: 2^32 of them would fit into the file, the header's limit comes first.
  EXPECT_EQ(error(raw::File({.pairs = {raw::Pair("k", ValueType::kArray,
                                                 raw::Array(ValueType::kString, uint64_t{1} << 32, {}))}})),
            ErrorCode::kResourceExhausted);
  EXPECT_LT(mallinfo2().uordblks + mallinfo2().hblkhd, before + (1 << 20));
}

TEST(Hostile, EveryPrefixOfAFileIsRefused) {
  ModelBuilder model;
  model.metadata().SetStrings("tokens", std::vector<std::string>{"a", "b", "long token"});
  model.metadata().SetF32s("scores", std::vector<float>{1, 2, 3});
  model.AddRandom("a", formats::DType::kF32, {32}).AddRandom("b", formats::DType::kQ8_0, {64});
  const Bytes whole = model.Build();
  ASSERT_EQ(ErrorOf(whole), "");
  const auto opened = OpenBytes(whole);
  const Tensor& last = opened->tensors().back();
  for (size_t size = 0; size < last.offset + last.size_bytes; ++size) {
    const Bytes prefix(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_NE(ErrorOf(prefix), "") << size;
  }
  EXPECT_THAT(ErrorOf(raw::Text("GGUF")), HasSubstr("4 bytes, too few"));
  EXPECT_THAT(ErrorOf({}), HasSubstr("0 bytes, too few"));
}

// P05: data that is not where the directory says.
TEST(Hostile, DataOutsideOfTheFile) {
  const auto file = [](uint64_t offset_b, size_t data_bytes) {
    return raw::File({.infos = {raw::Info("a", {16}, kF32, 0), raw::Info("b", {16}, kF32, offset_b)},
                      .data = Bytes(data_bytes)});
  };
  EXPECT_EQ(ErrorOf(file(64, 128)), "");
  EXPECT_THAT(ErrorOf(file(64, 127)),
              AllOf(HasSubstr("tensor b: needs 64 bytes"), HasSubstr("but the file has")));
  EXPECT_THAT(ErrorOf(file(64, 0)), HasSubstr("tensor a: needs 64 bytes"));
  EXPECT_THAT(ErrorOf(file(68, 132)), HasSubstr("tensor b: offset 68 is not a multiple"));
  EXPECT_THAT(ErrorOf(file(~uint64_t{0} - 31, 128)), HasSubstr("tensor b: needs 64 bytes"));
  EXPECT_THAT(ErrorOf(file(32, 128)), HasSubstr("tensor a: its 64 bytes"));
  EXPECT_THAT(ErrorOf(file(0, 128)), HasSubstr("reach into tensor b"));
  for (const Bytes& bytes : {file(64, 127), file(68, 132), file(~uint64_t{0} - 31, 128), file(32, 128)}) {
    const auto opened = OpenBytes(bytes, Purpose::kInspect);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->tensors().size(), 2u);
    EXPECT_EQ(opened->problems().size(), 1u);
  }
  // A gap between tensors is nothing wrong.
  EXPECT_EQ(ErrorOf(file(96, 160)), "");
}

// P06: a name twice.
TEST(Hostile, Duplicates) {
  EXPECT_THAT(ErrorOf(raw::File({.infos = {raw::Info("blk.0.attn_q.weight", {8}, kF32, 0),
                                           raw::Info("blk.0.attn_q.weight", {8}, kF32, 32)},
                                 .data = Bytes(64)})),
              HasSubstr("tensor blk.0.attn_q.weight: is there twice"));
  EXPECT_THAT(ErrorOf(raw::File({.pairs = {raw::Pair("key", ValueType::kU32, raw::Number(1u)),
                                           raw::Pair("other", ValueType::kU32, raw::Number(1u)),
                                           raw::Pair("key", ValueType::kString, raw::String("x"))}})),
              HasSubstr("metadata key key: is there twice"));
}

// Names go into messages and listings: bounded, and nothing that a terminal would obey.
TEST(Hostile, NamesThatAreNoNames) {
  const auto tensor = [](std::string_view name) {
    return raw::File({.infos = {raw::Info(name, {8}, kF32, 0)}});
  };
  const auto key = [](std::string_view name) {
    return raw::File({.pairs = {raw::Pair(name, ValueType::kU8, raw::Number(uint8_t{1}))}});
  };
  for (const std::string& name :
       {std::string("a\x1b[2J"), std::string("a\0b", 3), std::string("\n"), std::string("\x7f")}) {
    EXPECT_THAT(ErrorOf(tensor(name)), HasSubstr("tensor 0: name at byte 24: has the control character"));
    EXPECT_THAT(ErrorOf(key(name)), HasSubstr("metadata pair 0: key at byte 24: has the control character"));
  }
  EXPECT_THAT(ErrorOf(tensor(std::string(1025, 'n'))), HasSubstr("has 1025 bytes, expected at most 1024"));
  EXPECT_THAT(ErrorOf(key(std::string(65536, 'k'))), HasSubstr("has 65536 bytes"));
  EXPECT_EQ(ErrorOf(key("gewichtsmaß.层")), "");  // odd, but harmless
}

TEST(Hostile, ProblemsAreBoundedAndTheWorstIsAmongThem) {
  std::vector<Bytes> infos;
  for (int i = 0; i < 3000; ++i) infos.push_back(raw::Info(fmt::format("odd{}", i), {8}, 99, 0));
  infos.push_back(raw::Info("cut", {1024}, kF32, 0));
  const Bytes file = raw::File({.infos = infos});
  EXPECT_THAT(ErrorOf(file), HasSubstr("tensor cut: needs 4096 bytes"));
  EXPECT_EQ(ProblemsOf(file).size(), kMaxProblems);
}

// P08: another byte order, old and future versions, other files.
TEST(Hostile, VersionsAndOtherFormats) {
  EXPECT_THAT(ErrorOf(raw::File({.version = 0x03000000, .tensor_count = ~uint64_t{0} - 1})),
              HasSubstr("byte order"));
  EXPECT_THAT(ErrorOf(raw::File({.version = 1})), HasSubstr("version 1 is not supported"));
  EXPECT_THAT(ErrorOf(raw::File({.version = 99})), HasSubstr("version 99 is not supported"));
  EXPECT_THAT(ErrorOf(raw::File({.version = 0})), HasSubstr("version 0"));
  EXPECT_THAT(ErrorOf(raw::File({.magic = "FUGG"})), HasSubstr("not a GGUF file"));
  EXPECT_THAT(ErrorOf(raw::Text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")),
              HasSubstr("Git LFS"));
  EXPECT_THAT(ErrorOf(raw::Text("<!DOCTYPE html><html>")), HasSubstr("web page"));
}

// P11: unknown types stop whoever needs that tensor, and nobody else.
TEST(Hostile, UnknownTypes) {
  for (const uint32_t type : {4u, 31u, 32u, 33u, 38u, 43u, 137u, 255u, 0xffffffffu}) {
    const Bytes file =
        raw::File({.infos = {raw::Info("odd", {100, 3}, type, 0), raw::Info("good", {8}, kF32, 256)},
                   .data = Bytes(512)});
    for (const Purpose purpose : {Purpose::kUse, Purpose::kInspect}) {
      const auto opened = OpenBytes(file, purpose);
      ASSERT_TRUE(opened) << opened.error().message;
      EXPECT_EQ(opened->tensors().size(), 2u);
      EXPECT_EQ(opened->Find("odd")->type_id, type);
      EXPECT_TRUE(opened->Require("good"));
      ASSERT_FALSE(opened->Require("odd"));
      EXPECT_EQ(opened->Require("odd").error().message,
                fmt::format("tensor odd: uses type id {}, which is not supported", type));
    }
    EXPECT_EQ(ProblemsOf(file).size(), 1u);
  }
}

// Every byte of a small file flipped in turn: an answer, never a crash.
TEST(Hostile, FlippedBytes) {
  ModelBuilder model;
  model.metadata().SetStrings("tokens", std::vector<std::string>{"a", "bc"});
  model.AddRandom("a", formats::DType::kF32, {32}).AddRandom("b", formats::DType::kQ4_0, {64});
  const Bytes whole = model.Build();
  int refused = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const auto flip : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
      Bytes bytes = whole;
      bytes[i] ^= flip;
      refused += ErrorOf(bytes).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace sluice::gguf
