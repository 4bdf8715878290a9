#include "quantize/feedback.h"

#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/units.h"
#include "gguf/writer.h"
#include "kv/cache.h"
#include "model/facts.h"
#include "model/model.h"
#include "platform/temp_folder.h"
#include "quantize/feedback_encoder.h"
#include "quantize/quantizer.h"
#include "quantize/synth.h"

namespace sluice::quantize {
namespace {

using testing::HasSubstr;

constexpr SynthShape kShape{.name = "feedback",
                            .architecture = "llama",
                            .layers = 2,
                            .d_model = 256,
                            .d_ff = 256,
                            .n_heads = 4,
                            .n_kv_heads = 2,
                            .head_dim = 64,
                            .context_length = 64};

class FeedbackTest : public testing::Test {
 protected:
  FeedbackTest() { EXPECT_TRUE(SynthesizeFile(kShape, **FindMix("F16"), {}, path_)); }

  struct Machine {
    explicit Machine(int threads, uint64_t budget = uint64_t{1} << 30) : ledger(budget), pool(threads) {}
    memory::Ledger ledger;
    parallel::ThreadPool pool;
    MonotonicClock clock;
    runtime::Context context{.kernels = &kernels::BestKernels(platform::DetectCpuFeatures()),
                             .pool = &pool,
                             .ledger = &ledger,
                             .clock = &clock};
  };

  static TextChunks Text(int chunks) {
    TextChunks text;
    for (int c = 0; c < chunks; ++c) {
      std::vector<int32_t>& chunk = text.emplace_back();
      for (int i = 0; i < 64; ++i) chunk.push_back((i * i + 7 * i * c + 3 * c) % 500);
    }
    return text;
  }

  std::vector<TypeChoice> ChoicesOf(const char* mix) {
    const auto file = gguf::GgufFile::Open(path_);
    return *ChooseTypes(file->tensors(), file->metadata(), {.mix = *FindMix(mix)});
  }

  Result<EncodedTensors> Encode(Machine& machine, const char* mix, FeedbackOptions options) {
    return EncodeWithFeedback(machine.context, path_, ChoicesOf(mix), std::move(options),
                              folder_ / "scratch");
  }

  // The whole way to a file.
  std::string Quantised(Machine& machine, const char* mix, const std::string& name) {
    auto encoded = Encode(machine, mix, {.text = Text(2)});
    EXPECT_TRUE(encoded) << encoded.error().message;
    auto file = gguf::GgufFile::Open(path_);
    EXPECT_TRUE(encoded->ReplaceIn(*file));
    QuantizeOptions options{.encoded = &*file};
    options.types.mix = *FindMix(mix);
    const auto report = QuantizeFile(path_, folder_ / name, options, machine.pool);
    EXPECT_TRUE(report) << report.error().message;
    EXPECT_GT(report->tensors.back().errors.elements, 0u);
    std::ifstream stream(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  bool ScratchIsLeft() const {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path())) {
      if (entry.path().filename().string().starts_with("scratch")) return true;
    }
    return false;
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "model.gguf";
};

TEST_F(FeedbackTest, ThreadsChangeNothingAndTheSizeIsThatOfThePlainFile) {
  Machine one(1), three(3);
  const std::string by_one = Quantised(one, "Q3_K_M", "one.gguf"),
                    by_three = Quantised(three, "Q3_K_M", "three.gguf");
  EXPECT_EQ(by_one, by_three);
  EXPECT_FALSE(ScratchIsLeft());
  QuantizeOptions plain;
  plain.types.mix = *FindMix("Q3_K_M");
  ASSERT_TRUE(QuantizeFile(path_, folder_ / "plain.gguf", plain, one.pool));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "plain.gguf"), by_one.size());
  std::ifstream stream(folder_ / "plain.gguf", std::ios::binary);
  EXPECT_NE(std::string(std::istreambuf_iterator<char>(stream), {}), by_one);
  // It runs.
  const auto model = model::Model::Open(one.context, folder_ / "one.gguf", {});
  EXPECT_TRUE(model) << model.error().message;
}

TEST_F(FeedbackTest, TypesWithoutBlocksAreLeftToTheQuantiser) {
  Machine machine(2);
  const auto encoded = Encode(machine, "BF16", {.text = Text(1)});
  ASSERT_TRUE(encoded) << encoded.error().message;
  auto file = gguf::GgufFile::Open(path_);
  ASSERT_TRUE(encoded->ReplaceIn(*file));
  EXPECT_EQ(file->shards().size(), 1u) << "nothing was encoded";
}

TEST_F(FeedbackTest, WhatCanNotBeIsRefusedAndNothingIsLeft) {
  Machine machine(2);
  EXPECT_THAT(Encode(machine, "Q4_K_M", {}).error().message, HasSubstr("no tokens"));

  int calls = 0;
  FeedbackOptions stopped{.text = Text(2)};
  stopped.progress = [&calls](double share) {
    EXPECT_GE(share, 0);
    EXPECT_LE(share, 1);
    return ++calls < 20;
  };
  EXPECT_EQ(Encode(machine, "Q4_K_M", std::move(stopped)).error().code, ErrorCode::kInterrupted);
  EXPECT_FALSE(ScratchIsLeft());

  TextChunks odd = Text(1);
  odd[0][3] = 1'000'000;
  EXPECT_THAT(Encode(machine, "Q4_K_M", {.text = odd}).error().message, HasSubstr("outside the vocabulary"));

  Machine small(2, uint64_t{1} << 20);
  EXPECT_EQ(Encode(small, "Q4_K_M", {.text = Text(8)}).error().code, ErrorCode::kDoesNotFit);
  EXPECT_FALSE(ScratchIsLeft());
}

// Of what is taken from the ledger the most is needed while the inputs of the widest matrices are gathered.
TEST_F(FeedbackTest, AModelOfEightBillionTakesLessThanAGibibyte) {
  constexpr int kThreads = 8;
  constexpr int64_t kChunk = 512;
  const int64_t widest = FeedbackOptions().widest;
  const SynthShape& shape = **FindShape("llama-3.1-8b");
  gguf::Metadata metadata;
  SetShapeMetadata(shape, metadata);
  const auto config = model::ReadConfig(metadata);
  ASSERT_TRUE(config);
  gguf::Writer writer(std::move(metadata));
  for (const SynthTensor& tensor : TensorsOf(shape)) {
    const bool matrix = tensor.kind == SynthTensor::Kind::kMatrix;
    const std::array<uint64_t, 2> dims{tensor.columns, tensor.rows};
    ASSERT_TRUE(writer.AddTensor(tensor.name, matrix ? formats::DType::kF16 : formats::DType::kF32,
                                 std::span(dims).first(matrix ? 2 : 1)));
  }
  const auto facts = model::FactsOf(*config, writer.tensors(), 0);
  ASSERT_TRUE(facts) << facts.error().message;
  const kv::Settings settings{.context_length = kChunk, .batch = kChunk};
  const TextChunks text(40, std::vector<int32_t>(kChunk));
  const uint64_t bytes =
      Calibration::StreamBytes(text, shape.d_model) + BlockDiagonal::Bytes(shape.d_ff, widest) +
      Hessian::WorkingBytes(shape.d_ff, widest, kThreads) +
      facts->activation_bytes(settings, kThreads, runtime::Fusion::kNone) + facts->kv_bytes(settings);
  EXPECT_LT(bytes, kGiB);
  EXPECT_LT(FeedbackEncoder::Bytes(shape.d_ff, formats::DType::kQ4_K),
            facts->activation_bytes(settings, kThreads, runtime::Fusion::kNone))
      << "encoding, which comes after the pass, takes less";
  RecordProperty("bytes", std::to_string(bytes));
}

}  // namespace
}  // namespace sluice::quantize
