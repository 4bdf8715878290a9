#include "gguf/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::gguf {
namespace {

using ::testing::HasSubstr;

class Overrides : public ::testing::Test {
 protected:
  Overrides() {
    metadata_.SetU32("llama.context_length", 2048);
    metadata_.SetF32("llama.rope.freq_base", 10000);
    metadata_.SetBool("tokenizer.ggml.add_bos_token", true);
    metadata_.SetString("general.name", "old");
    metadata_.SetU32s("list", std::vector<uint32_t>{1});
  }
  std::string ErrorOf(std::string_view text) {
    const auto status = ApplyOverride(text, metadata_);
    return status ? "" : status.error().message;
  }
  Metadata metadata_;
};

TEST_F(Overrides, TypedAndPlain) {
  EXPECT_EQ(ErrorOf("llama.context_length=int:4096"), "");
  EXPECT_EQ(*metadata_.GetU32("llama.context_length"), 4096u);
  EXPECT_EQ(metadata_.Find("llama.context_length")->type, ValueType::kU32);
  EXPECT_EQ(ErrorOf("llama.context_length=8192"), "");
  EXPECT_EQ(*metadata_.GetU32("llama.context_length"), 8192u);
  EXPECT_EQ(ErrorOf("llama.rope.freq_base=5e5"), "");
  EXPECT_EQ(*metadata_.GetF32("llama.rope.freq_base"), 500000.0f);
  EXPECT_EQ(ErrorOf("tokenizer.ggml.add_bos_token=bool:false"), "");
  EXPECT_FALSE(*metadata_.GetBool("tokenizer.ggml.add_bos_token"));
  EXPECT_EQ(ErrorOf("general.name=str:a=b:c"), "");
  EXPECT_EQ(*metadata_.GetString("general.name"), "a=b:c");
  EXPECT_EQ(ErrorOf("general.name=http://x"), "");  // "http" is no type
  EXPECT_EQ(*metadata_.GetString("general.name"), "http://x");
}

TEST_F(Overrides, NewKeys) {
  EXPECT_EQ(ErrorOf("new.int=int:7"), "");
  EXPECT_EQ(metadata_.Find("new.int")->type, ValueType::kU32);
  EXPECT_EQ(ErrorOf("new.negative=int:-7"), "");
  EXPECT_EQ(*metadata_.GetI64("new.negative"), -7);
  EXPECT_EQ(ErrorOf("new.float=float:0.25"), "");
  EXPECT_EQ(*metadata_.GetF32("new.float"), 0.25f);
  EXPECT_EQ(ErrorOf("new.string=str:"), "");
  EXPECT_EQ(*metadata_.GetString("new.string"), "");
  EXPECT_THAT(ErrorOf("typo.key=5"), HasSubstr("no such key; to add it, say its type: typo.key=int:"));
}

TEST_F(Overrides, Refused) {
  for (const char* text : {"", "=", "key", "=int:5"})
    EXPECT_THAT(ErrorOf(text), HasSubstr("expected KEY=VALUE")) << text;
  EXPECT_THAT(ErrorOf("llama.context_length=int:abc"), HasSubstr("\"abc\" is not a number"));
  EXPECT_THAT(ErrorOf("llama.context_length=int:12x"), HasSubstr("is not a number"));
  EXPECT_THAT(ErrorOf("llama.context_length=4294967296"), HasSubstr("is not a number for u32"));
  EXPECT_THAT(ErrorOf("llama.context_length=float:1"), HasSubstr("is u32 in the file, not float"));
  EXPECT_THAT(ErrorOf("llama.rope.freq_base=nan"), HasSubstr("finite"));
  EXPECT_THAT(ErrorOf("tokenizer.ggml.add_bos_token=1"), HasSubstr("true or false"));
  EXPECT_THAT(ErrorOf("list=int:1"), HasSubstr("not int"));
  EXPECT_THAT(ErrorOf("list=1"), HasSubstr("can't be overridden"));
  EXPECT_THAT(ErrorOf("general.alignment=int:64"), HasSubstr("laid out"));
  EXPECT_THAT(ErrorOf("split.count=int:2"), HasSubstr("laid out"));
  EXPECT_EQ(*metadata_.GetU32("llama.context_length"), 2048u);
}

}  // namespace
}  // namespace sluice::gguf
