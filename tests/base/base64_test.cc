#include "base/base64.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// The vectors of RFC 4648.
TEST(Base64Test, ThereAndBack) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    EXPECT_EQ(DecodeBase64(text), bytes);
  }
}

TEST(Base64Test, WhatIsNone) {
  EXPECT_EQ(DecodeBase64("Zm9v\n"), "foo");
  EXPECT_EQ(DecodeBase64("Zg"), "f");
  EXPECT_FALSE(DecodeBase64("Z"));
  EXPECT_FALSE(DecodeBase64("Zm 9v"));
  EXPECT_FALSE(DecodeBase64("Zm9v-"));
}

}  // namespace
}  // namespace sluice
