#include "quantize/quantizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "formats/decode.h"
#include "gguf/builder.h"
#include "platform/temp_folder.h"
#include "quantize/made_up_importance.h"

namespace sluice::quantize {
namespace {

using formats::DType;
using gguf::testing::Bytes;
using gguf::testing::ModelBuilder;
using gguf::testing::OpenBytes;
using ::testing::HasSubstr;

// Two layers; one of the rows is longer than a piece, another shorter than a super-block.
ModelBuilder Model(DType dtype = DType::kF32) {
  ModelBuilder model;
  model.metadata().SetString("general.name", "made up");
  model.metadata().SetU32("general.file_type", 0);
  model.metadata().SetU32("llama.block_count", 2);
  model.AddRandom("token_embd.weight", dtype, {256, 33});
  model.AddRandom("blk.0.attn_norm.weight", DType::kF32, {256});
  model.AddRandom("blk.0.attn_q.weight", dtype, {256, 64});
  model.AddRandom("blk.0.ffn_up.weight", dtype, {96, 20});
  model.AddRandom("blk.1.ffn_down.weight", dtype, {kPieceElements + 512, 3});
  model.AddRandom("blk.1.ffn_up_exps.weight", dtype, {256, 6, 4});
  model.AddRandom("output.weight", dtype, {256, 33});
  return model;
}

struct Made {
  Bytes bytes;
  QuantizeReport report;
};

Result<Made> Make(const Bytes& input, std::string_view mix, QuantizeOptions options = {}, int threads = 2) {
  options.types.mix = *FindMix(mix);
  parallel::ThreadPool pool(threads);
  SLUICE_TRY_ASSIGN(const gguf::GgufFile source, OpenBytes(input));
  Made made;
  SLUICE_TRY_ASSIGN(made.report,
                    Quantize(source, options, pool, [&](uint64_t) -> Result<std::unique_ptr<gguf::ByteSink>> {
                      return std::unique_ptr<gguf::ByteSink>(std::make_unique<gguf::MemorySink>(&made.bytes));
                    }));
  return made;
}

std::vector<float> Decode(const gguf::GgufFile& file, std::string_view name) {
  const gguf::Tensor& tensor = *file.Find(name);
  Bytes data(tensor.size_bytes);
  EXPECT_TRUE(file.Read(tensor, 0, data));
  std::vector<float> values(tensor.elements());
  formats::DecodeRow(tensor.traits->dtype, data.data(), values);
  return values;
}

TEST(Quantizer, KeepsTheRestAndReportsTheError) {
  const Bytes input = Model().Build();
  const auto made = Make(input, "Q4_K_M");
  ASSERT_TRUE(made) << made.error().message;
  const auto before = OpenBytes(input), after = OpenBytes(made->bytes);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(*after->metadata().GetString("general.name"), "made up");
  EXPECT_EQ(*after->metadata().GetU32("general.file_type"), 15u);
  EXPECT_EQ(*after->metadata().GetU32("general.quantization_version"), 2u);
  EXPECT_EQ(*after->metadata().GetString("sluice.writer.name"), "sluice");
  EXPECT_EQ(made->report.file_bytes, made->bytes.size());
  ASSERT_EQ(after->tensors().size(), before->tensors().size());

  for (size_t i = 0; i < after->tensors().size(); ++i) {
    const gguf::Tensor& tensor = after->tensors()[i];
    const TensorReport& report = made->report.tensors[i];
    SCOPED_TRACE(tensor.name);
    EXPECT_EQ(tensor.name, before->tensors()[i].name);
    EXPECT_EQ(tensor.dims, before->tensors()[i].dims);
    EXPECT_EQ(report.name, tensor.name);
    EXPECT_EQ(report.dtype, tensor.traits->dtype);
    EXPECT_EQ(report.bytes, tensor.size_bytes);
    const std::vector<float> x = Decode(*before, tensor.name), y = Decode(*after, tensor.name);
    double error = 0, squares = 0;
    for (size_t k = 0; k < x.size(); ++k) {
      error += (double{x[k]} - y[k]) * (double{x[k]} - y[k]);
      squares += double{x[k]} * x[k];
    }
    if (tensor.name == "blk.0.attn_norm.weight") {
      EXPECT_FALSE(report.recoded);
      EXPECT_EQ(error, 0);
      continue;
    }
    EXPECT_TRUE(report.recoded);
    EXPECT_NEAR(report.errors.Rmse(), std::sqrt(error / static_cast<double>(x.size())), 1e-9);
    EXPECT_NEAR(report.errors.RelativeError(), std::sqrt(error / squares), 1e-9);
    EXPECT_GT(report.errors.RelativeError(), 0.005);
    EXPECT_LT(report.errors.RelativeError(), 0.09);
    // The worst block is where it is said to be.
    const uint64_t at = report.errors.worst_row * tensor.columns() + report.errors.worst_column;
    const uint64_t length = std::max(tensor.traits->block_length, 32u);
    double worst = 0;
    for (uint64_t k = at; k < at + length; ++k) worst += (double{x[k]} - y[k]) * (double{x[k]} - y[k]);
    EXPECT_NEAR(report.errors.worst, worst / static_cast<double>(length), 1e-9);
    EXPECT_EQ(report.substitute, tensor.columns() == 96);
  }
}

TEST(Quantizer, SameBytesWithAnyNumberOfThreads) {
  const Bytes input = Model(DType::kBF16).Build();
  const auto one = Make(input, "Q3_K_M", {}, 1), three = Make(input, "Q3_K_M", {}, 3);
  ASSERT_TRUE(one && three);
  EXPECT_EQ(one->bytes, three->bytes);
  for (size_t i = 0; i < one->report.tensors.size(); ++i) {
    EXPECT_EQ(one->report.tensors[i].errors.error, three->report.tensors[i].errors.error);
    EXPECT_EQ(one->report.tensors[i].errors.worst_row, three->report.tensors[i].errors.worst_row);
  }
}

TEST(Quantizer, EveryMix) {
  const Bytes input = Model(DType::kF16).Build();
  for (const Mix& mix : AllMixes()) {
    const auto made = Make(input, mix.name);
    ASSERT_TRUE(made) << mix.name << ": " << made.error().message;
    const auto file = OpenBytes(made->bytes);
    ASSERT_TRUE(file) << mix.name << ": " << file.error().message;
    EXPECT_EQ(*file->metadata().GetU32("general.file_type"), mix.file_type) << mix.name;
    for (const TensorReport& tensor : made->report.tensors)
      EXPECT_LT(tensor.errors.RelativeError(), 0.65) << mix.name << " " << tensor.name;
  }
}

// P61: what is quantised already changes its type only when that is allowed, and is copied where it keeps its
// type.
TEST(Quantizer, Requantizing) {
  const auto once = Make(Model().Build(), "Q4_0");
  ASSERT_TRUE(once);
  const auto refused = Make(once->bytes, "Q8_0");
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("quantised already (the first is token_embd.weight, Q4_0)"));
  const auto allowed = Make(once->bytes, "Q8_0", {.allow_requantize = true});
  ASSERT_TRUE(allowed);
  EXPECT_EQ(allowed->report.requantized, 6u);
  EXPECT_EQ(*OpenBytes(allowed->bytes)->metadata().GetU32("general.file_type"), 7u);

  const auto again = Make(once->bytes, "Q4_0");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->bytes, once->bytes);
  EXPECT_EQ(again->report.requantized, 0u);
}

// P60, P62: the first weight that no type could hold is named with its place.
TEST(Quantizer, WeightsThatAreNoNumbers) {
  for (const float bad : {NAN, INFINITY, -INFINITY, 1e30f}) {
    std::vector<float> values(3 * 512, 0.5f);
    values[2 * 512 + 70] = bad;
    ModelBuilder model;
    model.AddF32("blk.0.ffn_up.weight", {512, 3}, values);
    for (const char* mix : {"Q4_0", "Q4_K_M", "IQ2_XXS", "F16"}) {
      const auto made = Make(model.Build(), mix);
      ASSERT_FALSE(made) << mix << " " << bad;
      EXPECT_EQ(made.error().code, bad == 1e30f ? ErrorCode::kUnsupported : ErrorCode::kCorrupt);
      EXPECT_THAT(made.error().message,
                  HasSubstr("tensor blk.0.ffn_up.weight: the weight at row 2, column 70"));
    }
    EXPECT_EQ(Make(model.Build(), "BF16").has_value(), bad == 1e30f);
  }
  // A block whose scale is infinite.
  Bytes block(18 * 2);
  block[18 + 1] = std::byte{0x7c};
  ModelBuilder model;
  model.Add("blk.0.ffn_up.weight", DType::kQ4_0, {32, 2}, block);
  const auto made = Make(model.Build(), "Q8_0", {.allow_requantize = true});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("row 1, column 0"));
}

TEST(Quantizer, ZerosStayZeros) {
  ModelBuilder model;
  model.AddF32("blk.0.ffn_up.weight", {512, 2}, std::vector<float>(1024));
  const auto made = Make(model.Build(), "IQ3_S");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->report.tensors[0].errors.RelativeError(), 0);
  EXPECT_THAT(Decode(*OpenBytes(made->bytes), "blk.0.ffn_up.weight"), ::testing::Each(0.0f));
}

TEST(Quantizer, ImportanceLowersTheWeightedError) {
  const Bytes input = Model().Build();
  std::vector<float> columns(256), experts(256 * 4);
  for (size_t i = 0; i < columns.size(); ++i) columns[i] = i % 16 == 0 ? 100.0f : 1.0f;
  std::copy(columns.begin(), columns.end(), experts.begin() + 256);  // expert 1; the others were never seen
  const MadeUpImportance importance(
      {{"blk.0.attn_q.weight", columns}, {"blk.1.ffn_up_exps.weight", experts}});
  const MadeUpImportance uniform({{"blk.0.attn_q.weight", std::vector<float>(256, 1)}});

  const auto plain = Make(input, "Q2_K", {.importance = &uniform});
  const auto weighted = Make(input, "Q2_K", {.importance = &importance});
  ASSERT_TRUE(plain && weighted);
  EXPECT_EQ(weighted->report.without_importance, 4u);
  const TensorReport& q = weighted->report.tensors[2];
  EXPECT_TRUE(q.by_importance);
  EXPECT_LT(q.errors.WeightedRelativeError(), 0.8 * plain->report.tensors[2].errors.RelativeError());
  EXPECT_GT(q.errors.RelativeError(), plain->report.tensors[2].errors.RelativeError());
  EXPECT_EQ(weighted->report.tensors[5].unseen_matrices, 3u);

  const MadeUpImportance foreign({{"transformer.h.0", {1}}});
  EXPECT_EQ(Make(input, "Q2_K", {.importance = &foreign}).error().code, ErrorCode::kInvalidArgument);
  const MadeUpImportance broken({{"blk.0.attn_q.weight", std::vector<float>(256, NAN)}});
  EXPECT_THAT(Make(input, "Q2_K", {.importance = &broken}).error().message, HasSubstr("blk.0.attn_q.weight"));
}

// One outlier in each block takes the codes of the others.
TEST(Quantizer, PointsOutWhatDeservesMoreBits) {
  ModelBuilder model;
  for (int i = 0; i < 4; ++i) model.AddRandom(fmt::format("blk.{}.ffn_up.weight", i), DType::kF32, {256, 8});
  std::vector<float> outliers(256 * 8);
  for (size_t i = 0; i < outliers.size(); ++i)
    outliers[i] = i % 32 == 0 ? 30 : static_cast<float>(i * 37 % 64) / 32 - 1;
  model.AddF32("blk.4.ffn_up.weight", {256, 8}, outliers);
  const auto made = Make(model.Build(), "Q8_0");
  ASSERT_TRUE(made);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(made->report.tensors[i].deserves_more, i == 4) << i;
  // Two of a type say nothing about each other.
  const auto few = Make(model.Build(), "Q4_0", {.types = {.overrides = {{"blk.[34].*", DType::kQ8_0}}}});
  ASSERT_TRUE(few);
  EXPECT_FALSE(few->report.tensors[4].deserves_more);
}

TEST(Quantizer, ProgressEndsAtAllAndMayStop) {
  const Bytes input = Model().Build();
  uint64_t last = 0, total = 0;
  const auto whole = Make(input, "Q8_0", {.progress = [&](uint64_t done, uint64_t all) {
                            EXPECT_GT(done, last);
                            last = done;
                            total = all;
                            return true;
                          }});
  ASSERT_TRUE(whole);
  EXPECT_EQ(last, total);
  int calls = 0;
  const auto stopped = Make(input, "Q8_0", {.progress = [&](uint64_t, uint64_t) { return ++calls < 3; }});
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(calls, 3);
}

class QuantizeFileTest : public ::testing::Test {
 protected:
  std::string WriteModel(std::string_view name, const Bytes& bytes) {
    return folder_.Write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  Result<QuantizeReport> Run(const std::string& input, const std::string& output,
                             QuantizeOptions options = {}) {
    options.types.mix = *FindMix("Q4_0");
    parallel::ThreadPool pool(1);
    return QuantizeFile(input, output, options, pool);
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  TempFolder folder_;
};

// P58: over whatever name, the output never destroys an input.
TEST_F(QuantizeFileTest, RefusesToWriteOverItsInput) {
  const Bytes bytes = Model().Build();
  const std::string input = WriteModel("in.gguf", bytes);
  std::filesystem::create_symlink(input, folder_ / "link.gguf");
  std::filesystem::create_hard_link(input, folder_ / "hard.gguf");
  for (const std::string& output :
       {input, folder_ / "./in.gguf", folder_ / "link.gguf", folder_ / "hard.gguf"}) {
    const auto made = Run(input, output);
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument) << output;
    EXPECT_THAT(made.error().message, HasSubstr("same file as an input"));
  }
  EXPECT_EQ(std::filesystem::file_size(input), bytes.size());
}

// P57: errors and interrupts leave nothing behind, and an old file as it was.
TEST_F(QuantizeFileTest, LeavesNothingBehind) {
  const std::string input = WriteModel("in.gguf", Model().Build());
  const std::string old = folder_.Write("out.gguf", "old");
  const auto stopped = Run(input, old, {.progress = [](uint64_t, uint64_t) { return false; }});
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(Files(), (std::vector<std::string>{"in.gguf", "out.gguf"}));
  EXPECT_EQ(std::filesystem::file_size(old), 3u);
  EXPECT_EQ(Run(input, folder_ / "missing/out.gguf").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Run(input, "/dev/full").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Run(folder_ / "none.gguf", old).error().code, ErrorCode::kNotFound);

  Bytes cut = Model().Build();
  cut.resize(cut.size() - 1000);
  EXPECT_EQ(Run(WriteModel("cut.gguf", cut), old).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(std::filesystem::file_size(old), 3u);

  ASSERT_TRUE(Run(input, old));
  EXPECT_TRUE(gguf::GgufFile::Open(old));
  EXPECT_EQ(Files(), (std::vector<std::string>{"cut.gguf", "in.gguf", "out.gguf"}));
}

// A split model becomes one file, and none of its parts is written over.
TEST_F(QuantizeFileTest, SplitInput) {
  for (uint32_t part = 0; part < 2; ++part) {
    ModelBuilder model;
    model.metadata().SetU32("llama.block_count", 1);
    model.AddRandom(fmt::format("blk.{}.ffn_up.weight", part), DType::kF16, {64, 8});
    // The writer takes split keys away, so they are put in by hand.
    gguf::testing::raw::FileParts parts;
    using namespace gguf::testing::raw;
    parts.pairs = {Pair("general.architecture", gguf::ValueType::kString, String("llama")),
                   Pair("split.no", gguf::ValueType::kU16, Number(static_cast<uint16_t>(part))),
                   Pair("split.count", gguf::ValueType::kU16, Number(uint16_t{2})),
                   Pair("split.tensors.count", gguf::ValueType::kI32, Number(int32_t{2}))};
    parts.infos = {Info(fmt::format("blk.{}.ffn_up.weight", part), {64, 8}, 1, 0)};
    parts.data = Bytes(64 * 8 * 2);
    WriteModel(gguf::ShardPath("m", part + 1, 2), File(parts));
  }
  const std::string first = folder_ / gguf::ShardPath("m", 1, 2),
                    second = folder_ / gguf::ShardPath("m", 2, 2);
  EXPECT_EQ(Run(first, second).error().code, ErrorCode::kInvalidArgument);
  const auto made = Run(first, folder_ / "whole.gguf");
  ASSERT_TRUE(made) << made.error().message;
  const auto whole = gguf::GgufFile::Open(folder_ / "whole.gguf");
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->tensors().size(), 2u);
  EXPECT_FALSE(whole->metadata().Has("split.count"));
}

}  // namespace
}  // namespace sluice::quantize
