#include "convert/safetensors.h"

#include <gmock/gmock.h>

#include <cmath>

#include "convert/safetensors_builder.h"
#include "platform/temp_folder.h"

namespace sluice::convert {
namespace {

using testing::HasSubstr;

std::string ErrorOf(std::string_view header, uint64_t data_bytes) {
  const auto tensors = ParseSafetensorsHeader(header, data_bytes);
  return tensors ? "read" : tensors.error().message;
}

// P20: any order in the header is fine.
TEST(SafetensorsTest, ReadsTensorsInOrderOfTheirPlaces) {
  const auto tensors = ParseSafetensorsHeader(
      R"({"b": {"dtype": "F32", "shape": [2, 3], "data_offsets": [4, 28]}, "__metadata__": {"format": "pt"},
          "a": {"data_offsets": [0, 4], "shape": [2], "dtype": "BF16"}})",
      28);
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[0].type, ElementType::kBF16);
  EXPECT_EQ((*tensors)[1].rows(), 2u);
  EXPECT_EQ((*tensors)[1].columns(), 3u);
}

TEST(SafetensorsTest, ScalarsAndEmptyTensorsAreFine) {
  EXPECT_EQ(ErrorOf(R"({"s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
                        "e": {"dtype": "F32", "shape": [0, 5], "data_offsets": [4, 4]}})",
                    4),
            "read");
}

// P20. Each row: a header that breaks the format, the bytes of data behind it, and what must be named.
TEST(SafetensorsTest, BrokenHeadersNameTheTensor) {
  struct Case {
    const char* header;
    uint64_t data_bytes;
    const char* expected;
  };
  const Case cases[] = {
      {R"({"w": {"dtype": "F32", "shape": [1000, 1000], "data_offsets": [0, 4]}})", 4,
       "w: shape [1000, 1000]"},
      {R"({"w": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 4]}})", 4,
       "more than 2^64"},
      {R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}})", 4, "w.data_offsets"},
      {R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [8, 4]}})", 8, "w lies at bytes 8 to 4"},
      {R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0]}})", 4, "has 1 numbers"},
      {R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0.0, 4.0]}})", 4, "w.data_offsets"},
      {R"({"w": {"dtype": "F7", "shape": [1], "data_offsets": [0, 4]}})", 4, "unknown type F7"},
      {R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 400]}})", 4, "the file has 4 bytes"},
      {R"({"v": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
           "w": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}})",
       12, "w overlaps v"},
      {R"({"v": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
           "w": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}})",
       12, "4 bytes before tensor w"},
      {R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", 8, "4 bytes behind"},
      {R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
           "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})",
       4, "w is there twice"},
      {R"({"w": {"dtype": "F32", "shape": [1]}})", 4, "w lacks"},
      {R"({"w": {"dtype": "F32", "shape": {"a": 1}, "data_offsets": [0, 4]}})", 4, "w.shape"},
      {R"({"w": {"dtype": "F32", "shape": [[1]], "data_offsets": [0, 4]}})", 4, "w.shape"},
      {R"({"w": 1})", 4, "w: the number 1"},
      {R"({"__metadata__": {"format": 1}})", 0, "__metadata__"},
      {R"([1])", 0, "an array"},
      {R"({"w": )", 0, "no JSON"},
      {"", 0, "no JSON"},
  };
  for (const Case& broken : cases)
    EXPECT_THAT(ErrorOf(broken.header, broken.data_bytes), HasSubstr(broken.expected)) << broken.header;
}

TEST(SafetensorsTest, DeepNestingEndsAtOnce) {
  EXPECT_THAT(ErrorOf(std::string(200'000, '['), 0), HasSubstr("an array"));
  EXPECT_THAT(ErrorOf(R"({"w": {"shape": )" + std::string(200'000, '['), 0), HasSubstr("w.shape"));
}

// P20: a length that reaches beyond the file.
TEST(SafetensorsTest, TheLengthOfTheHeaderIsChecked) {
  const TempFolder folder;
  const auto error = [&](const std::string& bytes) {
    const auto file = platform::File::Open(folder.Write("f.safetensors", bytes));
    const auto tensors = ReadSafetensors(*file);
    return tensors ? "read" : tensors.error().message;
  };
  EXPECT_EQ(error(SafetensorsBuilder::Whole("{}", "")), "read");
  EXPECT_THAT(error("1234567"), HasSubstr("has 7 bytes"));
  EXPECT_THAT(error(std::string(8, '\xff')), HasSubstr("expected at most 0"));
  EXPECT_THAT(error(std::string(7, '\0') + std::string("\x01", 1)), HasSubstr("expected at most 0"));
  EXPECT_THAT(error(SafetensorsBuilder::Whole("", "data")), HasSubstr("no JSON"));
  EXPECT_THAT(error(std::string("\x0a\0\0\0\0\0\0\0{}", 10)), HasSubstr("has 10 bytes; expected at most 2"))
      << "the length of the whole file";
}

TEST(SourceTensorTest, EightBitFloats) {
  const std::vector<std::byte> bytes{std::byte{0x00}, std::byte{0x01}, std::byte{0x08}, std::byte{0x38},
                                     std::byte{0xc0}, std::byte{0x7e}, std::byte{0x7f}};
  std::vector<float> e4m3(bytes.size()), e5m2(bytes.size());
  ToFloats(ElementType::kF8E4M3, bytes, e4m3);
  ToFloats(ElementType::kF8E5M2, bytes, e5m2);
  EXPECT_THAT(std::vector<float>(e4m3.begin(), e4m3.end() - 1),
              testing::ElementsAre(0.0f, 0x1p-9f, 0x1p-6f, 1.0f, -2.0f, 448.0f));
  EXPECT_TRUE(std::isnan(e4m3.back()));
  EXPECT_THAT(std::vector<float>(e5m2.begin(), e5m2.begin() + 5),
              testing::ElementsAre(0.0f, 0x1p-16f, 0x1p-13f, 0.5f, -2.0f));
  EXPECT_TRUE(std::isnan(e5m2.back()));
}

}  // namespace
}  // namespace sluice::convert
