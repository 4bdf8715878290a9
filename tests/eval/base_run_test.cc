#include "eval/base_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/divergence.h"
#include "eval/made_up_run.h"
#include "sample/softmax.h"

namespace sluice::eval {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(BaseRunTest, RowsComeBackWithinHalfAStep) {
  const BaseRun run = MadeUpRun(300);
  const std::vector<std::vector<float>> rows = MadeUpRows(run);
  const std::vector<std::byte> file = WriteRun(run, rows);
  EXPECT_EQ(file.size(), BaseRunWriter::FileBytes(run));

  BaseRunReader reader = *OpenRun(file);
  EXPECT_EQ(reader.run().model, run.model);
  EXPECT_EQ(reader.run().windows, run.windows);
  EXPECT_TRUE(CheckComparable(reader.run(), run));
  for (int64_t i = 0; i < run.windows.scored(); ++i) {
    const std::vector<float>& logits = rows[static_cast<size_t>(i)];
    const auto [least, most] = std::ranges::minmax(logits);
    const double half_step = (static_cast<double>(most) - static_cast<double>(least)) / 65534 / 2;
    const sample::LogSoftmax softmax(logits);
    const std::span<const float> row = *reader.Row(i);
    for (size_t id = 0; id < logits.size(); ++id)
      ASSERT_NEAR(row[id], softmax.LogProbability(logits[id]), 1.01 * half_step + 2e-6) << id;
  }
}

TEST(BaseRunTest, DivergenceFromTheFileIsThatFromTheLogits) {
  const BaseRun run = MadeUpRun(300);
  const std::vector<std::vector<float>> rows = MadeUpRows(run);
  BaseRunReader reader = *OpenRun(WriteRun(run, rows));
  Divergence exact, kept, same;
  for (int64_t i = 0; i < run.windows.scored(); ++i) {
    const std::vector<float>& base = rows[static_cast<size_t>(i)];
    std::vector<float> logits = base;
    const std::vector<float> noise = MadeUpLogits(300, static_cast<uint32_t>(1000 + i));
    for (size_t id = 0; id < logits.size(); ++id) logits[id] += noise[id] / 100;
    exact.Add(base, logits, run.windows.Target(i));
    kept.Add(*reader.Row(i), logits, run.windows.Target(i));
    same.Add(*reader.Row(i), base, run.windows.Target(i));
  }
  EXPECT_GT(exact.kl().mean(), 1e-4);
  EXPECT_NEAR(kept.kl().mean(), exact.kl().mean(), 1e-3 * exact.kl().mean());
  EXPECT_EQ(kept.same_top().right, exact.same_top().right);
  EXPECT_LT(same.kl().mean(), 1e-7);  // what the codes alone make: about a step squared over 24
}

TEST(BaseRunTest, OddLogitsKeepTheirMeaning) {
  const BaseRun run = MadeUpRun(4, 3);
  const float most = std::numeric_limits<float>::max();
  const std::vector<std::vector<float>> rows = {
      {1, std::nanf(""), -kInf, 0}, {-kInf, -kInf, -kInf, -kInf}, {kInf, 0, most, -most}, {2, 2, 2, 2}};
  ASSERT_EQ(run.windows.scored(), 4);
  BaseRunReader reader = *OpenRun(WriteRun(run, rows));
  std::span<const float> row = *reader.Row(0);
  EXPECT_NEAR(row[0], -std::log(1 + std::exp(-1.0)), 1e-6);
  EXPECT_EQ(row[1], -kInf);
  EXPECT_EQ(row[2], -kInf);
  row = *reader.Row(1);
  for (const float x : row) EXPECT_EQ(x, -kInf);
  row = *reader.Row(2);
  EXPECT_NEAR(row[0], -std::log(2.0), 1e-6);
  EXPECT_NEAR(row[2], -std::log(2.0), 1e-6);
  EXPECT_NEAR(row[3], -kMostSpread, 1);  // cut there
  row = *reader.Row(3);
  for (const float x : row) EXPECT_NEAR(x, -std::log(4.0), 1e-6);
}

TEST(BaseRunTest, SaysWhatDiffers) {
  const BaseRun base = MadeUpRun(300);
  const auto message = [&](auto change) {
    BaseRun other = base;
    change(other);
    const Status status = CheckComparable(base, other);
    EXPECT_FALSE(status.has_value());
    return status ? "" : status.error().message;
  };
  EXPECT_TRUE(CheckComparable(base, base));
  EXPECT_NE(message([](BaseRun& run) { run.vocabulary_size = 301; }).find("vocabulary of 300"),
            std::string::npos);
  EXPECT_NE(message([](BaseRun& run) { ++run.vocabulary_hash; }).find("another vocabulary"),
            std::string::npos);
  EXPECT_NE(message([](BaseRun& run) { ++run.text_hash; }).find("another text"), std::string::npos);
  EXPECT_NE(message([](BaseRun& run) { ++run.windows.first_scored; }).find("windows of 8"),
            std::string::npos);
  EXPECT_NE(message([](BaseRun& run) { run.windows.ids.resize(8); }).find("2 windows"), std::string::npos);
  EXPECT_NE(message([](BaseRun& run) { run.windows.ids[11] = 5; }).find("token 11 of the text is 11"),
            std::string::npos);
}

TEST(BaseRunTest, AFileThatIsNotWholeIsRefused) {
  const BaseRun run = MadeUpRun(30);
  const std::vector<std::byte> file = WriteRun(run, MadeUpRows(run));
  for (size_t size = 0; size < file.size(); size += size < 300 ? 1 : 97)
    EXPECT_FALSE(OpenRun({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)})) << size;
  std::vector<std::byte> longer = file;
  longer.push_back(std::byte{0});
  EXPECT_EQ(OpenRun(longer).error().code, ErrorCode::kCorrupt);
}

// Every byte is covered by a check: whatever changes, it is an error and no other number.
TEST(BaseRunTest, AChangedByteIsFound) {
  const BaseRun run = MadeUpRun(30);
  const std::vector<std::byte> file = WriteRun(run, MadeUpRows(run));
  for (size_t at = 0; at < file.size(); ++at) {
    std::vector<std::byte> changed = file;
    changed[at] ^= std::byte{0x10};
    auto reader = OpenRun(changed);
    bool sound = reader.has_value();
    for (int64_t i = 0; sound && i < run.windows.scored(); ++i) sound = reader->Row(i).has_value();
    EXPECT_FALSE(sound) << at;
  }
}

}  // namespace
}  // namespace sluice::eval
