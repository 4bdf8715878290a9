#include "base/units.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(UnitsTest, ParsesSizes) {
  const struct {
    const char* text;
    uint64_t bytes;
  } cases[] = {{"0", 0},
               {"4096", 4096},
               {"4096B", 4096},
               {"1K", 1024},
               {"1k", 1024},
               {"1kB", 1024},
               {"1KiB", 1024},
               {"512M", 512 * kMiB},
               {"8G", 8 * kGiB},
               {"8gib", 8 * kGiB},
               {"1.5GiB", 3 * kGiB / 2},
               {"0.5K", 512},
               {"2T", 2048 * kGiB},
               {"8388608T", uint64_t{1} << 63}};
  for (const auto& c : cases) {
    const Result<uint64_t> size = ParseSize(c.text);
    ASSERT_TRUE(size) << c.text;
    EXPECT_EQ(*size, c.bytes) << c.text;
  }
}

TEST(UnitsTest, RefusesWhatIsNotASize) {
  for (const char* text :
       {"",    "G",    "-1",    "-0",  "-1G",  "+1",  " 1",  "1 G",  "1X",       "1Gi",
        "1iB", "1GB2", "1GiBB", "1e3", "0x10", "nan", "inf", "1,5G", "8388609T", "99999999999999999999",
        "1K\n"}) {
    const Result<uint64_t> size = ParseSize(text);
    ASSERT_FALSE(size) << "'" << text << "' gave " << *size;
    EXPECT_EQ(size.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(size.error().message.find(std::string("'") + text + "'"), std::string::npos)
        << size.error().message;
  }
  EXPECT_FALSE(ParseSize({}));  // no bytes at all
  EXPECT_FALSE(ParseSize(std::string_view("1\0G", 3)));
}

TEST(UnitsTest, FormatsBytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.00 KiB");
  EXPECT_EQ(FormatBytes(10 * kKiB), "10.0 KiB");
  EXPECT_EQ(FormatBytes(100 * kKiB), "100 KiB");
  EXPECT_EQ(FormatBytes(10 * kKiB - 1), "10.0 KiB");
  EXPECT_EQ(FormatBytes(100 * kKiB - 1), "100 KiB");
  EXPECT_EQ(FormatBytes(kMiB - 1), "1.00 MiB");
  EXPECT_EQ(FormatBytes(8 * kGiB), "8.00 GiB");
  EXPECT_EQ(FormatBytes(~uint64_t{0}), "16.0 EiB");
}

TEST(UnitsTest, FormatsCounts) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1.00K");
  EXPECT_EQ(FormatCount(5767168), "5.77M");
  EXPECT_EQ(FormatCount(32763876352), "32.8B");
  EXPECT_EQ(FormatCount(999999), "1.00M");
  EXPECT_EQ(FormatCount(~uint64_t{0}), "18.4E");
}

TEST(UnitsTest, CheckedArithmetic) {
  uint64_t result = 0;
  EXPECT_TRUE(CheckedMultiply(uint64_t{1} << 32, (uint64_t{1} << 32) - 1, &result));
  EXPECT_EQ(result, 0xffffffff00000000ull);
  EXPECT_FALSE(CheckedMultiply(uint64_t{1} << 32, uint64_t{1} << 32, &result));
  EXPECT_FALSE(CheckedMultiply(~uint64_t{0}, 2, &result));
  EXPECT_TRUE(CheckedAdd(~uint64_t{0} - 1, 1, &result));
  EXPECT_EQ(result, ~uint64_t{0});
  EXPECT_FALSE(CheckedAdd(~uint64_t{0}, 1, &result));
  EXPECT_EQ(AlignUp(0, 4096), 0u);
  EXPECT_EQ(AlignUp(1, 4096), 4096u);
  EXPECT_EQ(AlignUp(4096, 4096), 4096u);
}

}  // namespace
}  // namespace sluice
