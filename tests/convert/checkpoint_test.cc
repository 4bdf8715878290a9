#include "convert/checkpoint.h"

#include <gmock/gmock.h>

#include "convert/pytorch_builder.h"
#include "convert/safetensors_builder.h"
#include "platform/temp_folder.h"

namespace sluice::convert {
namespace {

using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  // A file with tensors of one number each.
  void WriteFile(const std::string& name, std::initializer_list<std::pair<const char*, float>> tensors) {
    SafetensorsBuilder builder;
    for (const auto& [tensor, value] : tensors) builder.AddF32(tensor, {1}, {&value, 1});
    folder_.Write(name, builder.Build());
  }
  void WriteIndex(const std::string& map) {
    folder_.Write("model.safetensors.index.json", R"({"metadata": {}, "weight_map": )" + map + "}");
  }
  std::string Error() const {
    const auto checkpoint = Checkpoint::Open(folder_.path());
    return checkpoint ? "opened" : checkpoint.error().message;
  }

  TempFolder folder_;
};

TEST_F(CheckpointTest, OneFile) {
  WriteFile("model.safetensors", {{"a", 1.5f}, {"b", 2.5f}});
  const auto checkpoint = Checkpoint::Open(folder_.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors().size(), 2u);
  float value = 0;
  ASSERT_TRUE(checkpoint->Read(*checkpoint->Find("b"), 0, {&value, 1}));
  EXPECT_EQ(value, 2.5f);
  EXPECT_EQ(checkpoint->Find("c"), nullptr);
}

TEST_F(CheckpointTest, SeveralFilesWithAnIndex) {
  WriteFile("model-1.safetensors", {{"a", 1}});
  WriteFile("model-2.safetensors", {{"b", 2}});
  WriteIndex(R"({"a": "model-1.safetensors", "b": "model-2.safetensors"})");
  const auto checkpoint = Checkpoint::Open(folder_.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_THAT(checkpoint->file_of(*checkpoint->Find("b")), HasSubstr("model-2"));
}

// P63: shards and tensors that the index names and that are not there, or the reverse.
TEST_F(CheckpointTest, WhatIsMissingIsListed) {
  WriteFile("model-1.safetensors", {{"a", 1}});
  WriteIndex(R"({"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-3.safetensors"})");
  EXPECT_THAT(Error(), HasSubstr("2 of the 3 files"));
  EXPECT_THAT(Error(), HasSubstr("model-2.safetensors, model-3.safetensors"));
  WriteIndex(R"({"a": "model-1.safetensors", "b": "model-1.safetensors"})");
  EXPECT_THAT(Error(), HasSubstr("b (model-1.safetensors)"));
}

TEST_F(CheckpointTest, WhatIsTooMuchIsListed) {
  WriteFile("model-1.safetensors", {{"a", 1}, {"extra", 1}});
  WriteIndex(R"({"a": "model-1.safetensors"})");
  EXPECT_THAT(Error(), HasSubstr("extra (model-1.safetensors)"));
  WriteFile("model-1.safetensors", {{"a", 1}});
  WriteFile("model-2.safetensors", {{"a", 1}, {"b", 1}});
  WriteIndex(R"({"a": "model-1.safetensors", "b": "model-2.safetensors"})");
  EXPECT_THAT(Error(), HasSubstr("tensor a is in"));
}

TEST_F(CheckpointTest, AnIndexStaysInItsFolder) {
  for (const char* name :
       {"../model.safetensors", "/etc/model.safetensors", "sub/model.safetensors", "model.bin"}) {
    WriteIndex(std::string(R"({"a": ")") + name + "\"}");
    EXPECT_THAT(Error(), HasSubstr("in the same folder")) << name;
  }
  WriteIndex(R"({"a": 5})");
  EXPECT_THAT(Error(), HasSubstr("in the same folder"));
  WriteIndex("{}");
  EXPECT_THAT(Error(), HasSubstr("names no tensors"));
}

TEST_F(CheckpointTest, FilesOfPytorch) {
  const auto write = [&](const char* name, const char* tensor, float value) {
    PytorchBuilder builder;
    builder.Add(tensor, "FloatStorage", {1}, LittleEndian(value));
    folder_.Write(name, builder.Build());
  };
  write("pytorch_model.bin", "a", 1.5f);
  const auto one = Checkpoint::Open(folder_.path());
  ASSERT_TRUE(one) << one.error().message;
  float value = 0;
  ASSERT_TRUE(one->Read(*one->Find("a"), 0, {&value, 1}));
  EXPECT_EQ(value, 1.5f);

  folder_.Write("pytorch_model.bin.index.json",
                R"({"weight_map": {"a": "pytorch_model-1.bin", "b": "pytorch_model-2.bin"}})");
  write("pytorch_model-1.bin", "a", 1);
  EXPECT_THAT(Error(), HasSubstr("1 of the 2 files"));
  write("pytorch_model-2.bin", "b", 2);
  EXPECT_EQ(Error(), "opened");
  folder_.Write("pytorch_model.bin.index.json", R"({"weight_map": {"a": "model.safetensors"}})");
  EXPECT_THAT(Error(), HasSubstr("the name of a .bin file"));
}

// P63: no tensors are no checkpoint; of two kinds, the one that can't run code.
TEST_F(CheckpointTest, NothingToConvert) {
  EXPECT_THAT(Error(), HasSubstr("none of model.safetensors, pytorch_model.bin"));
  folder_.Write("consolidated.00.pth", "pickle");
  EXPECT_THAT(Error(), HasSubstr("if consolidated.00.pth is the checkpoint"));
  folder_.Write("pytorch_model.bin", "pickle");
  EXPECT_THAT(Error(), HasSubstr("pytorch_model.bin: is no zip file"));
  WriteFile("model.safetensors", {});
  EXPECT_THAT(Error(), HasSubstr("has no tensors"));
  WriteFile("model.safetensors", {{"a", 1}});
  EXPECT_EQ(Error(), "opened") << "safetensors are taken where there are pickles, too";
  EXPECT_THAT(Checkpoint::Open(folder_ / "none").error().message, HasSubstr("is no folder"));
}

}  // namespace
}  // namespace sluice::convert
