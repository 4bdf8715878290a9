#include "plan/device.h"

#include <gmock/gmock.h>

#include "base/units.h"

namespace sluice::plan {
namespace {

using testing::HasSubstr;

TEST(DeviceTest, ProfilesSurviveJson) {
  DeviceProfile device{
      .name = "a\"b", .source = "test", .total_bytes = 8 * kGiB, .budget_bytes = 3 * kGiB, .threads = 4};
  device.memory_bytes_per_second = 2e10;
  device.types = {{formats::DType::kQ4_K, 1e10, 2e11}, {formats::DType::kIQ1_S, 1e9, 1e10}};
  device.attention = {{kv::KvType::kQ8_0, 3e9}};
  device.storage = {{256 * kKiB, 1, io::IoBackend::kPread, 1e9}, {2 * kMiB, 8, io::IoBackend::kUring, 2.5e9}};
  device.other_types.decode_bytes_per_second = 5e9;
  const auto read = ParseDevice(ToJson(device));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(ToJson(*read), ToJson(device));
  EXPECT_EQ(read->RateOf(formats::DType::kQ4_K).prefill_multiplications_per_second, 2e11);
  EXPECT_EQ(read->RateOf(formats::DType::kQ6_K).decode_bytes_per_second, 5e9);  // not listed
  EXPECT_EQ(read->AttentionRateOf(kv::KvType::kQ8_0), 3e9);
  EXPECT_EQ(read->BestStorage().block_bytes, 2 * kMiB);
}

TEST(DeviceTest, BuiltInDevicesAreWholeAndNamed) {
  for (const DeviceProfile& device : BuiltInDevices()) {
    EXPECT_EQ(FindDevice(device.name), &device);
    EXPECT_TRUE(ParseDevice(ToJson(device)));
    EXPECT_LT(device.budget_bytes, device.total_bytes);
    EXPECT_GT(device.BestStorage().bytes_per_second, 0);
    EXPECT_FALSE(device.source.empty());
  }
  EXPECT_EQ(FindDevice("toaster"), nullptr);
}

TEST(DeviceTest, BrokenProfilesNameWhatIsWrong) {
  const auto refusal = [](std::string_view json) {
    const auto device = ParseDevice(json);
    return device ? "read" : device.error().message;
  };
  for (const char* text : {"", "[]", "3", "{", "null"})
    EXPECT_THAT(refusal(text), HasSubstr("one JSON object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("device.name: is missing"));
  std::string good = ToJson(*FindDevice("phone-8gb"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return refusal(text);
  };
  EXPECT_EQ(refusal(good), "read");
  EXPECT_THAT(with("\"types\": []", "\"types\": [{\"type\": \"Q9\"}]"), HasSubstr("no weight format"));
  EXPECT_THAT(with("\"types\": []", "\"types\": [7]"), HasSubstr("list of objects"));
  EXPECT_THAT(with("\"total_bytes\": 8589934592", "\"total_bytes\": -1"), HasSubstr("total_bytes"));
  EXPECT_THAT(with("\"total_bytes\": 8589934592", "\"total_bytes\": \"8\""), HasSubstr("total_bytes"));
  EXPECT_THAT(with("\"total_bytes\": 8589934592", "\"total_bytes\": 1e300"), HasSubstr("total_bytes"));
}

TEST(DeviceTest, DepthIsBounded) {
  std::string deep = "{\"name\": ";
  deep.append(100000, '[');
  EXPECT_FALSE(ParseDevice(deep));
}

}  // namespace
}  // namespace sluice::plan
