// Sound files: what is in them comes out, and no more of them is read than needed.
#include "gguf/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "gguf/builder.h"

namespace sluice::gguf {
namespace {

using testing::Bytes;
using ::testing::HasSubstr;
using testing::ModelBuilder;
using testing::OpenBytes;
namespace raw = testing::raw;

std::vector<float> Floats(const GgufFile& file, std::string_view name) {
  const auto tensor = file.Require(name);
  if (!tensor) return {};
  std::vector<float> values((*tensor)->elements());
  EXPECT_TRUE(file.Read(**tensor, 0, std::as_writable_bytes(std::span(values))));
  return values;
}

TEST(Reader, TensorsAndMetadata) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {7};
  ModelBuilder model("qwen3");
  model.AddF32("a", {3, 2}, a).AddF32("b", {1}, b).AddRandom("c", formats::DType::kQ4_K, {512, 3, 2});
  auto file = OpenBytes(model.Build());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(*file->metadata().GetString("general.architecture"), "qwen3");
  EXPECT_EQ(Floats(*file, "a"), a);
  EXPECT_EQ(Floats(*file, "b"), b);
  const Tensor* c = file->Find("c");
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->columns(), 512u);
  EXPECT_EQ(c->rows(), 6u);
  EXPECT_EQ(c->n_dims, 3u);
  EXPECT_EQ(c->traits->name, "Q4_K");
  EXPECT_EQ(c->size_bytes, 6u * 2 * 144);
  EXPECT_EQ(file->Find("d"), nullptr);
  EXPECT_EQ(file->Require("d").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(file->problems().empty());
  EXPECT_EQ(file->tensor_bytes(), 24u + 4 + c->size_bytes);

  GgufFile moved = *std::move(file);
  EXPECT_EQ(moved.tensors()[0].name, "a");
  EXPECT_EQ(Floats(moved, "b"), b);
}

TEST(Reader, Version2) {
  const Bytes file = raw::File({.pairs = {raw::Pair("k", ValueType::kU32, raw::Number(5u))}, .version = 2});
  auto opened = OpenBytes(file);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->version(), 2u);
  EXPECT_EQ(*opened->metadata().GetU32("k"), 5u);
}

// P03: other alignments give the same weights; those that make no sense are refused by name.
TEST(Reader, Alignment) {
  const std::vector<float> values = {1, -2, 3};
  for (const uint32_t alignment : {1u, 8u, 32u, 64u, 4096u}) {
    ModelBuilder model;
    model.metadata().SetU32("general.alignment", alignment);
    model.AddF32("a", {3}, values).AddF32("b", {3}, values);
    auto file = OpenBytes(model.Build());
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->alignment(), alignment);
    EXPECT_EQ(file->Find("b")->offset % alignment, 0u);
    EXPECT_EQ(Floats(*file, "a"), values);
    EXPECT_EQ(Floats(*file, "b"), values);
  }
}

TEST(Reader, AlignmentThatMakesNoSense) {
  const auto error = [](ValueType type, const Bytes& value) {
    const auto file = OpenBytes(raw::File({.pairs = {raw::Pair("general.alignment", type, value)},
                                           .infos = {raw::Info("t", {8}, 0, 0)},
                                           .data = Bytes(32)}));
    return file ? "" : file.error().message;
  };
  for (const uint32_t alignment : {0u, 3u, 33u, 0xffffffffu}) {
    EXPECT_THAT(error(ValueType::kU32, raw::Number(alignment)), HasSubstr("general.alignment: is"));
  }
  EXPECT_THAT(error(ValueType::kI32, raw::Number(32)), HasSubstr("is i32, expected u32"));
  EXPECT_THAT(error(ValueType::kU64, raw::Number(uint64_t{32})), HasSubstr("is u64, expected u32"));
  EXPECT_THAT(error(ValueType::kString, raw::String("32")), HasSubstr("is string, expected u32"));
  // A power of two, but the data would begin behind the file's end.
  EXPECT_THAT(error(ValueType::kU32, raw::Number(1u << 31)), HasSubstr("tensor t: needs 32 bytes"));
}

// Counts what is read of a file.
class CountingSource final : public ByteSource {
 public:
  CountingSource(Bytes bytes, uint64_t* total, uint64_t* furthest)
      : source_(std::move(bytes)), total_(total), furthest_(furthest) {}
  uint64_t size() const override { return source_.size(); }
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    *total_ += out.size();
    *furthest_ = std::max<uint64_t>(*furthest_, offset + out.size());
    return source_.ReadAt(offset, out);
  }

 private:
  testing::OwningSource source_;
  uint64_t* total_;
  uint64_t* furthest_;
};

TEST(Reader, ReadsTheHeaderOnlyAndOnce) {
  ModelBuilder model;
  std::vector<std::string> tokens(150'000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = "token " + std::to_string(i);
  model.metadata().SetStrings("tokenizer.ggml.tokens", tokens);
  model.AddRandom("w", formats::DType::kF16, {1024, 2048});  // 4 MiB of data behind 2.7 MB of header
  uint64_t total = 0, furthest = 0;
  auto file =
      GgufFile::Open("x", Purpose::kUse, [&](const std::string&) -> Result<std::unique_ptr<ByteSource>> {
        return std::unique_ptr<ByteSource>(
            std::make_unique<CountingSource>(model.Build(), &total, &furthest));
      });
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(total, furthest);  // no byte twice
  EXPECT_EQ(total, uint64_t{4} << 20);
  const auto read = *file->metadata().GetStrings("tokenizer.ggml.tokens");
  ASSERT_EQ(read.size(), tokens.size());
  EXPECT_EQ(read.front(), tokens.front());
  EXPECT_EQ(read.back(), tokens.back());
}

// A planner may have only the front of a file that is still to be downloaded.
TEST(Reader, TheFrontOfAFileIsEnoughForInspection) {
  ModelBuilder model;
  model.AddRandom("w", formats::DType::kF32, {1024, 1024});
  Bytes front = model.Build();
  front.resize(1 << 20);
  EXPECT_EQ(OpenBytes(front).error().code, ErrorCode::kCorrupt);
  auto file = OpenBytes(front, Purpose::kInspect);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 1u);
  ASSERT_EQ(file->problems().size(), 1u);
  EXPECT_THAT(file->problems()[0].message, HasSubstr("tensor w: needs 4194304 bytes"));
  std::byte byte;
  EXPECT_FALSE(file->Read(file->tensors()[0], 0, std::span(&byte, 1)));
}

TEST(Reader, FilesOnDisk) {
  ModelBuilder model;
  model.AddF32("a", {2}, std::vector<float>{1, 2}).AddF32("b", {2}, std::vector<float>{3, 4});
  const Bytes bytes = model.Build();
  const std::string path = ::testing::TempDir() + "reader_test.gguf";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  auto file = GgufFile::Open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(Floats(*file, "b"), (std::vector<float>{3, 4}));

  // P05: a file that shrinks while it is open is an error, not a signal.
  std::filesystem::resize_file(path, bytes.size() - 32);
  float values[2];
  const auto status = file->Read(*file->Find("b"), 0, std::as_writable_bytes(std::span(values)));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("tensor b"));
  std::filesystem::remove(path);

  EXPECT_EQ(GgufFile::Open(path).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(GgufFile::Open(::testing::TempDir()));
}

// Real files: every header can be read, and every tensor of the quantised models lies in the file.
TEST(Reader, ReferenceFiles) {
  const std::filesystem::path folder = SLUICE_REFERENCE_DIR;
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no reference data at " << folder;
  int files = 0;
  for (const char* sub : {"oracle/models", "oracle/quant", "vocab", "stories260K", "gpt-nano-sort"}) {
    for (const auto& item : std::filesystem::directory_iterator(folder / sub)) {
      if (item.path().extension() != ".gguf") continue;
      const auto file = GgufFile::Open(item.path().string());
      ASSERT_TRUE(file) << file.error().message;
      EXPECT_TRUE(file->problems().empty()) << item.path();
      EXPECT_TRUE(file->metadata().GetString("general.architecture")) << item.path();
      ++files;
    }
  }
  EXPECT_GE(files, 50);
}

}  // namespace
}  // namespace sluice::gguf
