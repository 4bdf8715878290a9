// P07: models in several files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/builder.h"
#include "gguf/reader.h"

namespace sluice::gguf {
namespace {

using ::testing::AllOf;
using testing::Bytes;
using ::testing::HasSubstr;
using testing::OpenFiles;
namespace raw = testing::raw;
using Files = std::map<std::string, Bytes>;

struct Part {
  uint16_t no;
  uint16_t count = 3;
  int32_t total = 3;
  std::string architecture;
  std::vector<std::string> tensors;
};

// As other programs write parts: split keys in all, everything else in the first.
Bytes MakePart(const Part& part) {
  raw::FileParts file;
  file.pairs = {raw::Pair("split.no", ValueType::kU16, raw::Number(part.no)),
                raw::Pair("split.count", ValueType::kU16, raw::Number(part.count)),
                raw::Pair("split.tensors.count", ValueType::kI32, raw::Number(part.total))};
  if (!part.architecture.empty()) {
    file.pairs.push_back(
        raw::Pair("general.architecture", ValueType::kString, raw::String(part.architecture)));
  }
  for (const std::string& name : part.tensors) {
    file.infos.push_back(raw::Info(name, {8}, 0, file.data.size()));
    for (float i = 0; i < 8; ++i) {
      const Bytes value = raw::Number(i + static_cast<float>(100 * part.no));
      file.data.insert(file.data.end(), value.begin(), value.end());
    }
  }
  return raw::File(file);
}

Files ThreeParts() {
  return {{"m-00001-of-00003.gguf", MakePart({.no = 0, .architecture = "llama", .tensors = {}})},
          {"m-00002-of-00003.gguf", MakePart({.no = 1, .tensors = {"a", "b"}})},
          {"m-00003-of-00003.gguf", MakePart({.no = 2, .tensors = {"output.weight"}})}};
}

std::string ErrorOf(const Files& files, const std::string& path = "m-00001-of-00003.gguf") {
  const auto file = OpenFiles(files, path);
  return file ? "" : file.error().message;
}

TEST(Split, OpensAllParts) {
  const auto file = OpenFiles(ThreeParts(), "m-00001-of-00003.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->shards().size(), 3u);
  EXPECT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->Find("b")->shard, 1u);
  EXPECT_EQ(file->Find("output.weight")->shard, 2u);
  EXPECT_EQ(*file->metadata().GetString("general.architecture"), "llama");
  float values[8];
  ASSERT_TRUE(file->Read(*file->Find("output.weight"), 0, std::as_writable_bytes(std::span(values))));
  EXPECT_EQ(values[3], 203.0f);
}

TEST(Split, MissingPartsAreNamed) {
  Files files = ThreeParts();
  files.erase("m-00002-of-00003.gguf");
  EXPECT_THAT(ErrorOf(files), HasSubstr("missing: m-00002-of-00003.gguf"));
  files.erase("m-00003-of-00003.gguf");
  EXPECT_THAT(ErrorOf(files), HasSubstr("m-00002-of-00003.gguf, m-00003-of-00003.gguf"));
  const auto file = OpenFiles(files, "m-00001-of-00003.gguf", Purpose::kInspect);
  ASSERT_TRUE(file);
  ASSERT_EQ(file->problems().size(), 1u);
  EXPECT_EQ(file->problems()[0].code, ErrorCode::kNotFound);
}

TEST(Split, OpenedFromALaterPart) {
  EXPECT_THAT(ErrorOf(ThreeParts(), "m-00002-of-00003.gguf"),
              HasSubstr("this is part 2 of 3; open the first part, m-00001-of-00003.gguf"));
}

TEST(Split, JoinedWithCat) {
  const Files parts = ThreeParts();
  Bytes joined;
  for (const auto& [name, bytes] : parts) joined.insert(joined.end(), bytes.begin(), bytes.end());
  EXPECT_THAT(ErrorOf({{"m.gguf", joined}}, "m.gguf"), AllOf(HasSubstr("part 1 of 3"), HasSubstr("cat")));
}

TEST(Split, TheNameAloneMakesNoSplit) {
  testing::ModelBuilder model;
  model.AddRandom("a", formats::DType::kF32, {8});
  EXPECT_EQ(ErrorOf({{"x-00001-of-00003.gguf", model.Build()}}, "x-00001-of-00003.gguf"), "");
  EXPECT_EQ(ErrorOf({{"x.gguf", MakePart({.no = 0, .count = 1, .total = 1, .tensors = {"a"}})}}, "x.gguf"),
            "");
}

TEST(Split, PartsOfOtherModels) {
  Files files = ThreeParts();
  files["m-00002-of-00003.gguf"] = MakePart({.no = 1, .total = 5, .tensors = {"a", "b"}});
  EXPECT_THAT(ErrorOf(files), HasSubstr("m-00002-of-00003.gguf belongs to another model"));
  files["m-00002-of-00003.gguf"] = MakePart({.no = 1, .count = 2, .tensors = {"a", "b"}});
  EXPECT_THAT(ErrorOf(files), HasSubstr("part 2 of 2"));
  files["m-00002-of-00003.gguf"] = MakePart({.no = 2, .tensors = {"a", "b"}});
  EXPECT_THAT(ErrorOf(files), HasSubstr("part 3 of 3"));
  files["m-00002-of-00003.gguf"] = MakePart({.no = 1, .architecture = "gemma", .tensors = {"a", "b"}});
  EXPECT_THAT(ErrorOf(files), HasSubstr("architecture is gemma, expected llama"));
  files["m-00002-of-00003.gguf"] = MakePart({.no = 1, .tensors = {"a"}});
  EXPECT_THAT(ErrorOf(files), HasSubstr("have 2 tensors, but split.tensors.count says 3"));
  files["m-00002-of-00003.gguf"] = testing::ModelBuilder().Build();
  EXPECT_THAT(ErrorOf(files), HasSubstr("belongs to another model"));
}

// P06 across parts.
TEST(Split, ANameInTwoParts) {
  Files files = ThreeParts();
  files["m-00002-of-00003.gguf"] = MakePart({.no = 1, .tensors = {"a", "output.weight"}});
  EXPECT_THAT(ErrorOf(files), HasSubstr("tensor output.weight: is there twice"));
}

TEST(Split, NumbersThatMakeNoSense) {
  for (const Part& part : {Part{.no = 3, .tensors = {}}, Part{.no = 9, .count = 3, .tensors = {}}}) {
    EXPECT_THAT(ErrorOf({{"m-00001-of-00003.gguf", MakePart(part)}}), HasSubstr("metadata says part"));
  }
  EXPECT_THAT(ErrorOf({{"m-00001-of-65535.gguf", MakePart({.no = 0, .count = 65535, .tensors = {}})}},
                      "m-00001-of-65535.gguf"),
              HasSubstr("metadata says part 0 of 65535"));
}

}  // namespace
}  // namespace sluice::gguf
