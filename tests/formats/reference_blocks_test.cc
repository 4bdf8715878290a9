// Every quantised block of the reference vectors decodes to the reference's floats, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "formats/decode.h"
#include "reference_blocks.h"

namespace sluice::formats {
namespace {

void ExpectSameBits(const std::vector<float>& found, const std::vector<float>& expected,
                    const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != found[i] && expected[i] != expected[i]) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(expected[i]))
        << what << " element " << i << ": " << found[i] << ", expected " << expected[i];
  }
}

void ExpectDecodes(DType dtype, const std::string& stored, const std::string& floats) {
  const std::vector<char> blocks = ReadReferenceFile(stored);
  const std::vector<float> expected = ReadReferenceFloats(floats);
  ASSERT_EQ(blocks.size(), RowBytes(dtype, expected.size())) << stored;
  std::vector<float> found(expected.size());
  DecodeRow(dtype, reinterpret_cast<const std::byte*>(blocks.data()), found);
  ExpectSameBits(found, expected, stored);
}

class ReferenceBlocks : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kReferenceBlocks))
      GTEST_SKIP() << "no reference vectors at " << kReferenceBlocks;
  }
};

TEST_F(ReferenceBlocks, DecodeBitForBit) {
  const auto index = ReadReferenceIndex();
  int types = 0, files = 0;
  for (const auto& type : index["types"]) {
    const DTypeTraits* traits = FindDType(type["id"].get<uint32_t>());
    if (traits == nullptr) {
      EXPECT_EQ(type["type"], "q8_K");  // a working format of that engine, never in files
      continue;
    }
    EXPECT_EQ(traits->block_length, type["block"].get<uint32_t>());
    EXPECT_EQ(traits->block_bytes, type["block_bytes"].get<uint32_t>());
    const std::pair<const char*, const char*> kinds[] = {
        {"quantised", "dequantised"}, {"quantised_imp", "dequantised_imp"}, {"random", "random_dequantised"}};
    for (const auto& [stored, floats] : kinds) {
      if (!type.contains(stored) || type[stored].is_null()) continue;
      ExpectDecodes(traits->dtype, type[stored], type[floats]);
      ++files;
    }
    ++types;
  }
  EXPECT_EQ(types, 27);
  EXPECT_GE(files, 2 * types);
}

TEST_F(ReferenceBlocks, EveryHalf) {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> found(halves.size());
  DecodeRow(DType::kF16, reinterpret_cast<const std::byte*>(halves.data()), found);
  ExpectSameBits(found, ReadReferenceFloats("f16_all.f32"), "f16");
}

// The value of code 2 (1.0) under each of the 256 scale bytes.
TEST_F(ReferenceBlocks, EveryScaleByteOfFp4) {
  std::vector<float> mxfp4, nvfp4;
  for (int scale = 0; scale < 256; ++scale) {
    float out[64];
    std::byte block[36];
    std::memset(block, 0x22, sizeof(block));
    block[0] = static_cast<std::byte>(scale);
    DecodeRow(DType::kMXFP4, block, std::span(out, 32));
    mxfp4.push_back(out[0]);
    DecodeRow(DType::kNVFP4, block, std::span(out, 64));
    nvfp4.push_back(out[0]);
  }
  ExpectSameBits(mxfp4, ReadReferenceFloats("mxfp4_scale_times_code2.f32"), "mxfp4");
  ExpectSameBits(nvfp4, ReadReferenceFloats("nvfp4_scale_times_code2.f32"), "nvfp4");
}

}  // namespace
}  // namespace sluice::formats
