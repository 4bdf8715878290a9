#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/builder.h"
#include "gguf/reader.h"

namespace sluice::gguf {
namespace {

using testing::Bytes;
using ::testing::HasSubstr;
namespace raw = testing::raw;

// F32 tensors of eight elements, all `value`.
Bytes FileOf(const std::vector<std::string>& names, float value, uint64_t columns = 8) {
  raw::FileParts file;
  for (const std::string& name : names) {
    file.infos.push_back(raw::Info(name, {columns}, 0, file.data.size()));
    for (uint64_t i = 0; i < columns; ++i) {
      const Bytes bytes = raw::Number(value);
      file.data.insert(file.data.end(), bytes.begin(), bytes.end());
    }
  }
  return raw::File(file);
}

class ReplaceTest : public ::testing::Test {
 protected:
  ReplaceTest() : file_(*testing::OpenFiles({{"model", FileOf({"a", "b", "c"}, 1)}}, "model")) {}

  Status Replace(const Bytes& by, std::vector<std::string> tensors = {}) {
    return file_.Replace({"other", std::move(tensors)},
                         [&by](const std::string&) -> Result<std::unique_ptr<ByteSource>> {
                           return std::unique_ptr<ByteSource>(std::make_unique<testing::OwningSource>(by));
                         });
  }
  float FirstOf(const std::string& name) const {
    float value = 0;
    EXPECT_TRUE(file_.Read(*file_.Find(name), 0, std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }

  GgufFile file_;
};

TEST_F(ReplaceTest, TensorsOfAnotherFileStandIn) {
  const Tensor* const b = file_.Find("b");
  ASSERT_TRUE(Replace(FileOf({"c", "b"}, 2)));
  EXPECT_EQ(FirstOf("a"), 1);
  EXPECT_EQ(FirstOf("b"), 2);
  EXPECT_EQ(FirstOf("c"), 2);
  EXPECT_EQ(file_.Find("b"), b);
  EXPECT_EQ(b->shard, 1u);
  EXPECT_EQ(file_.tensors()[2].name, "c") << "the order stays";
  ASSERT_TRUE(Replace(FileOf({"b"}, 3)));
  EXPECT_EQ(FirstOf("b"), 3);
  EXPECT_EQ(FirstOf("c"), 2);
}

TEST_F(ReplaceTest, OnlyThoseThatAreNamed) {
  ASSERT_TRUE(Replace(FileOf({"a", "b", "not in the model"}, 2), {"b"}));
  EXPECT_EQ(FirstOf("a"), 1);
  EXPECT_EQ(FirstOf("b"), 2);
}

TEST_F(ReplaceTest, WhatDoesNotBelongIsRefusedAndChangesNothing) {
  EXPECT_THAT(Replace(FileOf({"a", "d"}, 2)).error().message, HasSubstr("tensor d is not in the model"));
  EXPECT_THAT(Replace(FileOf({"a", "b"}, 2, 16)).error().message, HasSubstr("another shape"));
  EXPECT_THAT(Replace(FileOf({"a"}, 2), {"a", "b"}).error().message, HasSubstr("has 1 of the 2 tensors"));
  EXPECT_EQ(Replace(Bytes(100)).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(FirstOf("a"), 1);
  EXPECT_EQ(file_.shards().size(), 1u);
}

}  // namespace
}  // namespace sluice::gguf
