#include "gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "gguf/builder.h"
#include "gguf/reader.h"

namespace sluice::gguf {
namespace {

using testing::Bytes;
using ::testing::HasSubstr;
using testing::OpenBytes;

TEST(Writer, WrittenFilesNameTheirWriterAndAreWhole) {
  Metadata metadata;
  metadata.SetString("general.name", "original");
  metadata.SetU32("split.count", 3);
  metadata.SetU32("split.no", 0);
  Writer writer(std::move(metadata));
  ASSERT_TRUE(writer.AddTensor("a", formats::DType::kF32, {3}));
  ASSERT_TRUE(writer.AddTensor("b", formats::DType::kF16, {2, 5}));
  Bytes bytes;
  MemorySink sink(&bytes);
  ASSERT_TRUE(writer.Begin(sink));
  const Bytes data(12, std::byte{7});
  ASSERT_TRUE(writer.WriteData(std::span(data).first(5)));
  ASSERT_TRUE(writer.WriteData(std::span(data).subspan(5)));
  ASSERT_TRUE(writer.WriteData(Bytes(20, std::byte{9})));
  ASSERT_TRUE(writer.Finish());
  EXPECT_EQ(bytes.size(), *writer.FileBytes());
  EXPECT_EQ(bytes.size() % 32, 0u);

  const auto file = OpenBytes(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(*file->metadata().GetString("general.name"), "original");
  EXPECT_EQ(*file->metadata().GetString("sluice.writer.name"), "sluice");
  EXPECT_EQ(*file->metadata().GetString("sluice.writer.version"), SLUICE_VERSION);
  EXPECT_FALSE(file->metadata().Has("split.count"));
  Bytes read(20);
  ASSERT_TRUE(file->Read(*file->Find("b"), 0, read));
  EXPECT_EQ(read, Bytes(20, std::byte{9}));
}

TEST(Writer, RefusesBadTensors) {
  Writer writer{Metadata()};
  ASSERT_TRUE(writer.AddTensor("a", formats::DType::kF32, {3}));
  EXPECT_THAT(writer.AddTensor("a", formats::DType::kF32, {4}).error().message,
              HasSubstr("tensor a: was added before"));
  EXPECT_THAT(writer.AddTensor("q", formats::DType::kQ4_K, {100}).error().message, HasSubstr("whole blocks"));
  EXPECT_FALSE(writer.AddTensor("none", formats::DType::kF32, {}));
  EXPECT_FALSE(writer.AddTensor("five", formats::DType::kF32, {1, 1, 1, 1, 1}));
  EXPECT_FALSE(writer.AddTensor("huge", formats::DType::kF32, {uint64_t{1} << 62, 4}));
  EXPECT_EQ(writer.tensors().size(), 1u);
}

TEST(Writer, RefusesABadAlignment) {
  Metadata metadata;
  metadata.SetU32("general.alignment", 48);
  Bytes bytes;
  MemorySink sink(&bytes);
  Writer writer(std::move(metadata));
  EXPECT_THAT(writer.Begin(sink).error().message, HasSubstr("general.alignment"));
}

TEST(Writer, FilesAppearWhenTheyAreFinished) {
  const std::string path = ::testing::TempDir() + "writer_test.gguf";
  std::filesystem::remove(path);
  {
    Writer writer{Metadata()};
    ASSERT_TRUE(writer.AddTensor("a", formats::DType::kF32, {1024}));
    auto sink = CreateFileSink(path, *writer.FileBytes());
    ASSERT_TRUE(sink) << sink.error().message;
    ASSERT_TRUE(writer.Begin(**sink));
    EXPECT_FALSE(std::filesystem::exists(path));  // and given up here, half done
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  {
    Writer writer{Metadata()};
    ASSERT_TRUE(writer.AddTensor("a", formats::DType::kF32, {1024}));
    auto sink = CreateFileSink(path, *writer.FileBytes());
    ASSERT_TRUE(sink) << sink.error().message;
    ASSERT_TRUE(writer.Begin(**sink));
    ASSERT_TRUE(writer.WriteData(Bytes(4096)));
    ASSERT_TRUE(writer.Finish());
  }
  EXPECT_TRUE(GgufFile::Open(path));
  std::filesystem::remove(path);
}

// Every value type survives a copy from file to file.
TEST(Writer, MetadataIsCopiedByteForByte) {
  namespace raw = testing::raw;
  const Bytes original = raw::File(
      {.pairs = {
           raw::Pair("u8", ValueType::kU8, raw::Number(uint8_t{200})),
           raw::Pair("f64", ValueType::kF64, raw::Number(0.1)),
           raw::Pair("text", ValueType::kString, raw::String("x")),
           raw::Pair("texts", ValueType::kArray,
                     raw::Array(ValueType::kString, 2, raw::Join({raw::String(""), raw::String("yz")}))),
           raw::Pair("empty", ValueType::kArray, raw::Array(ValueType::kI16, 0, {}))}});
  const auto source = OpenBytes(original);
  ASSERT_TRUE(source) << source.error().message;
  Metadata copy;
  for (const Entry& entry : source->metadata().entries()) copy.Set(entry);
  Writer writer(std::move(copy));
  Bytes bytes;
  MemorySink sink(&bytes);
  ASSERT_TRUE(writer.Begin(sink));
  ASSERT_TRUE(writer.Finish());
  const auto written = OpenBytes(bytes);
  ASSERT_TRUE(written) << written.error().message;
  for (const Entry& entry : source->metadata().entries()) {
    const Entry* found = written->metadata().Find(entry.key);
    ASSERT_NE(found, nullptr) << entry.key;
    EXPECT_EQ(found->type, entry.type);
    EXPECT_EQ(found->element_type, entry.element_type);
    EXPECT_EQ(found->count, entry.count);
    EXPECT_TRUE(std::ranges::equal(found->payload, entry.payload)) << entry.key;
  }
}

}  // namespace
}  // namespace sluice::gguf
