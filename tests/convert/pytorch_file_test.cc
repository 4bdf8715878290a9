#include "convert/pytorch_file.h"

#include <gmock/gmock.h>

#include "convert/pytorch_builder.h"
#include "convert/zip_directory.h"
#include "platform/temp_folder.h"

namespace sluice::convert {
namespace {

using testing::HasSubstr;

std::string Floats(std::initializer_list<float> values) {
  std::string bytes;
  for (const float value : values) bytes += LittleEndian(value);
  return bytes;
}

class PytorchFileTest : public testing::Test {
 protected:
  Result<std::vector<SourceTensor>> Read(const std::string& bytes) {
    SLUICE_TRY_ASSIGN(const platform::File file,
                      platform::File::Open(folder_.Write("pytorch_model.bin", bytes)));
    return ReadPytorchFile(file);
  }
  std::string ErrorOf(const std::string& bytes) {
    const auto tensors = Read(bytes);
    return tensors ? "read" : tensors.error().message;
  }
  // One tensor, of a storage of six floats.
  std::string ErrorOfTensor(uint64_t elements, uint64_t first, const std::vector<uint64_t>& shape,
                            const std::vector<uint64_t>& strides, std::string_view key = "0") {
    PytorchBuilder builder;
    builder.AddStorage(Floats({1, 2, 3, 4, 5, 6}));
    builder.AddItem("w",
                    pickled::Tensor(pickled::Storage("FloatStorage", key, elements), first, shape, strides));
    return ErrorOf(builder.Build());
  }

  TempFolder folder_;
};

TEST_F(PytorchFileTest, TensorsLieWhereTheirBytesAre) {
  PytorchBuilder builder;
  builder.Add("a", "FloatStorage", {2, 2}, Floats({1, 2, 3, 4}));
  builder.Add("b", "HalfStorage", {3}, "bbbbbb");
  for (const bool zip64 : {false, true}) {
    ZipBuilder zip;
    if (zip64) zip.UseZip64();
    const std::string bytes = builder.Build(zip);
    const auto tensors = Read(bytes);
    ASSERT_TRUE(tensors) << tensors.error().message;
    ASSERT_EQ(tensors->size(), 2u);
    EXPECT_EQ((*tensors)[0].name, "a");
    EXPECT_EQ(bytes.substr((*tensors)[0].offset, (*tensors)[0].size_bytes), Floats({1, 2, 3, 4}));
    EXPECT_EQ((*tensors)[1].type, ElementType::kF16);
    EXPECT_EQ(bytes.substr((*tensors)[1].offset, (*tensors)[1].size_bytes), "bbbbbb");
  }
}

TEST_F(PytorchFileTest, TensorsMayShareAStorage) {
  PytorchBuilder builder;
  const std::string storage =
      pickled::Storage("FloatStorage", builder.AddStorage(Floats({1, 2, 3, 4, 5, 6})), 6);
  builder.AddItem("whole", pickled::Tensor(storage, 0, {3, 2}, {2, 1}));
  builder.AddItem("tied", pickled::Tensor(storage, 0, {3, 2}, {2, 1}));
  builder.AddItem("row",
                  pickled::Tensor(storage, 2, {1, 2}, {99, 1}));  // the stride of one row means nothing
  const auto tensors = Read(builder.Build());
  ASSERT_TRUE(tensors) << tensors.error().message;
  EXPECT_EQ((*tensors)[1].offset, (*tensors)[0].offset);
  EXPECT_EQ((*tensors)[2].offset, (*tensors)[0].offset + 8);
  EXPECT_EQ((*tensors)[2].size_bytes, 8u);
}

TEST_F(PytorchFileTest, ViewsThatAreNoRowsOfBytesAreNamed) {
  EXPECT_EQ(ErrorOfTensor(6, 0, {2, 3}, {3, 1}), "read");
  EXPECT_THAT(ErrorOfTensor(6, 0, {3, 2}, {1, 3}), HasSubstr("tensor w has the strides [1, 3]"));
  EXPECT_THAT(ErrorOfTensor(6, 0, {2, 2}, {3, 1}), HasSubstr("contiguous"));
  EXPECT_THAT(ErrorOfTensor(6, 0, {4}, {0}), HasSubstr("strides [0]"));
  EXPECT_THAT(ErrorOfTensor(6, 4, {3}, {1}),
              HasSubstr("from element 4 on reaches beyond data/0, which has 6"));
  EXPECT_THAT(ErrorOfTensor(6, 7, {0}, {1}), HasSubstr("reaches beyond"));
  EXPECT_THAT(ErrorOfTensor(6, 0, {1ull << 62, 1ull << 62}, {1, 1}), HasSubstr("reaches beyond"));
  EXPECT_THAT(ErrorOfTensor(7, 0, {6}, {1}), HasSubstr("data/0 has 24 bytes; expected 7 elements of F32"));
  EXPECT_THAT(ErrorOfTensor(6, 0, {6}, {1}, "5"), HasSubstr("data/5, which is not there"));
}

TEST_F(PytorchFileTest, OtherKindsOfFile) {
  EXPECT_THAT(ErrorOf("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."),
              HasSubstr("from before the zip format"));
  EXPECT_THAT(ErrorOf("no zip at all, and long enough to be one"), HasSubstr("is no zip file"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("pytorch_model.bin"));
  ZipBuilder other;
  other.Add("a/b.txt", "hello");
  EXPECT_THAT(ErrorOf(other.Build()), HasSubstr("no data.pkl"));
  ZipBuilder big;
  big.Add("model/byteorder", "big");
  EXPECT_THAT(ErrorOf(PytorchBuilder().Build(big)), HasSubstr("high byte first"));
  ZipBuilder little;
  little.Add("model/byteorder", "little");
  EXPECT_EQ(ErrorOf(PytorchBuilder().Build(little)), "read");
  ZipBuilder twice;
  twice.Add("model/version", "3\n");
  EXPECT_THAT(ErrorOf(PytorchBuilder().Build(twice)), HasSubstr("model/version is there twice"));
}

// --- the zip itself ---

TEST_F(PytorchFileTest, CompressedEntriesAreRefused) {
  ZipBuilder zip;
  zip.Add("model/data/0", "??", 8);
  EXPECT_THAT(ErrorOf(zip.Build()), HasSubstr("model/data/0 is compressed (method 8, deflate)"));
}

TEST_F(PytorchFileTest, ACommentMayHoldASignature) {
  ZipBuilder zip;
  zip.Add("model/data.pkl", pickled::Dict(""));
  EXPECT_EQ(ErrorOf(zip.Build("PK\5\6 and more of it, as many bytes as it takes")), "read");
}

// Other bytes in the directory and the end, and other lengths of the file, are survived.
TEST_F(PytorchFileTest, DamagedZips) {
  PytorchBuilder builder;
  builder.Add("a", "FloatStorage", {2}, Floats({1, 2}));
  for (const bool zip64 : {false, true}) {
    ZipBuilder zip;
    if (zip64) zip.UseZip64();
    const std::string whole = builder.Build(zip);
    for (size_t at = whole.size() - 400; at < whole.size(); at += 7) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
      (void)Read(damaged);
      EXPECT_FALSE(Read(whole.substr(0, at))) << at;
    }
  }
}

TEST(ZipDirectoryTest, PlacesBeyondTheFileAreNamed) {
  ZipBuilder zip;
  zip.Add("first", "12345");
  zip.Add("second", "67890");
  const auto bytes = std::as_bytes(std::span(zip.directory()));
  EXPECT_TRUE(ParseZipDirectory(bytes, 200));
  const auto beyond = ParseZipDirectory(bytes, 40);
  ASSERT_FALSE(beyond);
  EXPECT_THAT(beyond.error().message, HasSubstr("entry second has 5 bytes at byte 45; the file has 40"));
  EXPECT_FALSE(ParseZipDirectory(bytes.first(bytes.size() - 1), 200));
}

}  // namespace
}  // namespace sluice::convert
