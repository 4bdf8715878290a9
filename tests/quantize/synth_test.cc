#include "quantize/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/hash.h"
#include "formats/decode.h"
#include "gguf/builder.h"

namespace sluice::quantize {
namespace {

using gguf::testing::Bytes;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr SpecialToken kSpecials[] = {{0, "<unk>"}, {1, "<s>"}, {2, "</s>"}};

SynthShape Tiny() {
  return {.name = "tiny",
          .architecture = "llama",
          .layers = 2,
          .d_model = 256,
          .d_ff = 512,
          .n_heads = 4,
          .n_kv_heads = 1,
          .head_dim = 64,
          .context_length = 128,
          .vocabulary = VocabularyKind::kSentencePiece,
          .vocabulary_size = 400,
          .first_byte = 3,
          .specials = kSpecials,
          .bos = 1,
          .eos = 2,
          .add_bos = true};
}

Bytes Make(const SynthShape& shape, std::string_view mix, SynthOptions options = {}) {
  Bytes bytes;
  const auto status =
      Synthesize(shape, **FindMix(mix), options, [&](uint64_t) -> Result<std::unique_ptr<gguf::ByteSink>> {
        return std::unique_ptr<gguf::ByteSink>(std::make_unique<gguf::MemorySink>(&bytes));
      });
  EXPECT_TRUE(status) << status.error().message;
  return bytes;
}

std::vector<float> Decode(const gguf::GgufFile& file, const gguf::Tensor& tensor) {
  std::vector<std::byte> data(tensor.size_bytes);
  EXPECT_TRUE(file.Read(tensor, 0, data));
  std::vector<float> values(tensor.elements());
  formats::DecodeRow(tensor.traits->dtype, data.data(), values);
  return values;
}

TEST(Synth, EveryMixLoadsAndEveryTensorIsSane) {
  for (const Mix& mix : AllMixes()) {
    const auto file = gguf::testing::OpenBytes(Make(Tiny(), mix.name));
    ASSERT_TRUE(file) << mix.name << ": " << file.error().message;
    EXPECT_TRUE(file->problems().empty());
    EXPECT_EQ(*file->metadata().GetU32("general.file_type"), mix.file_type);
    EXPECT_TRUE(*file->metadata().GetBool(kSyntheticKey));
    EXPECT_THAT(*file->metadata().GetString("general.name"), EndsWith("(random weights)"));
    EXPECT_EQ(file->tensors().size(), 3u + 2 * 9);
    for (const gguf::Tensor& tensor : file->tensors()) {
      double sum = 0, squares = 0;
      for (const float value : Decode(*file, tensor)) {
        ASSERT_TRUE(std::isfinite(value)) << mix.name << " " << tensor.name;
        sum += value;
        squares += double{value} * value;
      }
      const auto n = static_cast<double>(tensor.elements());
      if (tensor.n_dims == 1) {
        EXPECT_NEAR(sum / n, 1, 0.02) << tensor.name;  // norms
      } else {
        const double wanted = 1 / std::sqrt(static_cast<double>(tensor.columns()));
        EXPECT_NEAR(std::sqrt(squares / n) / wanted, 1, 0.08) << mix.name << " " << tensor.name;
      }
    }
  }
}

TEST(Synth, RowsThatAreNoSuperBlocksFallBack) {
  SynthShape shape = Tiny();
  shape.d_model = 96;
  const auto file = gguf::testing::OpenBytes(Make(shape, "Q4_K_M"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->Find("blk.0.attn_q.weight")->traits->name, "Q5_0");
  EXPECT_EQ(file->Find("blk.0.ffn_down.weight")->traits->name, "Q4_K");  // 512 columns
  EXPECT_EQ(file->Find("output.weight")->traits->name, "Q8_0");
}

TEST(Synth, SameSeedSameBytes) {
  const Bytes first = Make(Tiny(), "Q4_K_M");
  EXPECT_EQ(first, Make(Tiny(), "Q4_K_M"));
  EXPECT_NE(first, Make(Tiny(), "Q4_K_M", {.seed = 2}));
}

TEST(Synth, FamiliesHaveTheirTensorsAndKeys) {
  SynthShape shape = Tiny();
  shape.architecture = "gemma3";
  shape.tied = shape.qk_norm = shape.post_norms = true;
  shape.sliding_window = 32;
  shape.rope_linear_factor = 8;
  auto file = gguf::testing::OpenBytes(Make(shape, "Q8_0"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->Find("output.weight"), nullptr);
  EXPECT_TRUE(file->Require("blk.1.attn_q_norm.weight"));
  EXPECT_TRUE(file->Require("blk.1.post_ffw_norm.weight"));
  EXPECT_EQ(*file->metadata().GetU32("gemma3.attention.sliding_window"), 32u);
  EXPECT_EQ(*file->metadata().GetString("gemma3.rope.scaling.type"), "linear");

  shape = Tiny();
  shape.architecture = "qwen2";
  shape.qkv_bias = true;
  file = gguf::testing::OpenBytes(Make(shape, "F16"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ((*file->Require("blk.0.attn_k.bias"))->elements(), 64u);
}

// Llama 3.1's divisors at both ends and in the blend between (values of the published rule).
TEST(Synth, Llama3RopeDivisors) {
  const std::vector<float> divisors = Llama3RopeDivisors(**FindShape("llama-3.1-8b"));
  ASSERT_EQ(divisors.size(), 64u);
  EXPECT_EQ(divisors[0], 1.0f);
  EXPECT_EQ(divisors[28], 1.0f);              // wavelength 1956
  EXPECT_NEAR(divisors[29], 1.2075, 0.0005);  // 2402: a blend
  EXPECT_EQ(divisors[63], 8.0f);
  EXPECT_TRUE(std::is_sorted(divisors.begin(), divisors.end()));
}

TEST(Synth, RealShapesHaveTheirParameters) {
  const std::pair<const char*, double> billions[] = {{"qwen2.5-32b", 32.76}, {"qwen3-32b", 32.76},
                                                     {"llama-3.1-8b", 8.03}, {"tinyllama-1.1b", 1.10},
                                                     {"gemma-2-2b", 2.61},   {"gemma-3-27b", 27.01}};
  ASSERT_EQ(AllShapes().size(), std::size(billions));
  for (const auto& [name, expected] : billions) {
    double parameters = 0;
    for (const SynthTensor& tensor : TensorsOf(**FindShape(name))) {
      parameters += static_cast<double>(tensor.columns * tensor.rows);
    }
    EXPECT_NEAR(parameters / 1e9, expected, 0.006) << name;
  }
  EXPECT_THAT(FindShape("gpt-5").error().message, HasSubstr("qwen2.5-32b"));
}

TEST(Synth, VocabulariesAreWhole) {
  for (const SynthShape& real : AllShapes()) {
    SynthShape shape = Tiny();  // small matrices under the real vocabulary
    shape.d_model = 32;
    shape.d_ff = 32;
    shape.layers = 1;
    shape.vocabulary = real.vocabulary;
    shape.vocabulary_size = real.vocabulary_size;
    shape.specials = real.specials;
    shape.first_byte = real.first_byte;
    const auto file = gguf::testing::OpenBytes(Make(shape, "Q8_0"));
    ASSERT_TRUE(file) << file.error().message;
    const auto tokens = *file->metadata().GetStrings("tokenizer.ggml.tokens");
    const auto types = *file->metadata().GetInts("tokenizer.ggml.token_type");
    ASSERT_EQ(tokens.size(), real.vocabulary_size);
    ASSERT_EQ(types.size(), real.vocabulary_size);
    EXPECT_EQ(std::set(tokens.begin(), tokens.end()).size(), tokens.size()) << real.name;  // no text twice
    for (const SpecialToken& special : real.specials) EXPECT_EQ(tokens[special.id], special.text);
    if (real.vocabulary == VocabularyKind::kSentencePiece) {
      EXPECT_EQ(tokens[real.first_byte], "<0x00>");
      EXPECT_EQ(tokens[real.first_byte + 255], "<0xFF>");
    } else {
      EXPECT_EQ(tokens[32], "\xc4\xa0");  // Ġ, the space
      EXPECT_FALSE(file->metadata().GetStrings("tokenizer.ggml.merges")->empty());
    }
  }
  SynthShape small = Tiny();
  small.vocabulary_size = 258;
  gguf::Metadata metadata;
  Bytes bytes;
  const auto status =
      Synthesize(small, **FindMix("F16"), {}, [&](uint64_t) -> Result<std::unique_ptr<gguf::ByteSink>> {
        return Fail(ErrorCode::kIo, "not reached");
      });
  EXPECT_THAT(status.error().message, HasSubstr("at least 259"));
}

TEST(Synth, FilesAppearWhenWholeAndCanBeStopped) {
  const std::string path = ::testing::TempDir() + "synth_test.gguf";
  std::filesystem::remove(path);
  std::vector<uint64_t> seen;
  SynthOptions options;
  options.progress = [&](uint64_t written, uint64_t total) {
    seen.push_back(written);
    return written <= total / 2;
  };
  const auto stopped = SynthesizeFile(Tiny(), **FindMix("F16"), options, path);
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
  EXPECT_FALSE(std::filesystem::exists(path));

  uint64_t last = 0, total_bytes = 0;
  options.progress = [&](uint64_t written, uint64_t total) {
    last = written;
    total_bytes = total;
    return true;
  };
  ASSERT_TRUE(SynthesizeFile(Tiny(), **FindMix("F16"), options, path));
  EXPECT_EQ(last, total_bytes);
  const auto file = gguf::GgufFile::Open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensor_bytes(), total_bytes);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace sluice::quantize
