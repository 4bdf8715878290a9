// sluice quantize from outside.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/program.h"
#include "gguf/builder.h"
#include "quantize/synth.h"

namespace sluice::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Ran;

class QuantizeProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_.AddRandom("token_embd.weight", formats::DType::kF16, {256, 64});
    model_.AddRandom("blk.0.attn_norm.weight", formats::DType::kF32, {256});
    model_.AddRandom("blk.0.ffn_down.weight", formats::DType::kF16, {256, 64});
    Write("in.gguf");
  }
  void Write(std::string_view name) {
    const gguf::testing::Bytes bytes = model_.Build();
    home_.Write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  Ran Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "quantize");
    return testing::RunProgram(home_, arguments);
  }
  bool Exists(std::string_view name) const { return std::filesystem::exists(home_ / name); }
  // No temporary files either.
  int FilesBeside() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(home_.path()))
      count += entry.path().filename().string().starts_with("out.gguf") ? 1 : 0;
    return count;
  }

  TempFolder home_;
  gguf::testing::ModelBuilder model_;
};

TEST_F(QuantizeProgramTest, TableAndJson) {
  const Ran table = Run({"in.gguf", "out.gguf", "Q4_K_M", "--tensor-type", "ffn_down=Q6_K"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("F16 → Q6_K"));
  EXPECT_THAT(table.out, HasSubstr("bits a weight"));
  EXPECT_EQ(testing::RunProgram(home_, {"inspect", "out.gguf"}).exit_code, 0);

  const Ran json = Run({"in.gguf", "out2.gguf", "q5_k_s", "--token-embedding-type", "Q8_0", "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto report = nlohmann::json::parse(json.out);
  EXPECT_EQ(report["file_bytes"], std::filesystem::file_size(home_ / "out2.gguf"));
  ASSERT_EQ(report["tensors"].size(), 3u);
  EXPECT_EQ(report["tensors"][0]["type"], "Q8_0");
  EXPECT_FALSE(report["tensors"][1].contains("rmse"));
  EXPECT_EQ(report["tensors"][2]["type"], "Q5_K");
  EXPECT_GT(report["tensors"][2]["relative_error"], 0.02);
  EXPECT_LT(report["tensors"][2]["relative_error"], 0.04);
}

TEST_F(QuantizeProgramTest, WrongUsage) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"in.gguf", "out.gguf", "Q9_K"},
                                             {"in.gguf", "out.gguf", "Q4_0", "--tensor-type", "nothing=Q8_0"},
                                             {"in.gguf", "out.gguf", "Q4_0", "--tensor-type", "ffn_down"},
                                             {"in.gguf", "out.gguf", "Q4_0", "--output-type", "Q99"},
                                             {"in.gguf", "in.gguf", "Q4_0"},
                                             {"in.gguf", "out.gguf"}}) {
    const Ran ran = Run(wrong);
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_THAT(ran.err, ::testing::Not(IsEmpty()));
    EXPECT_EQ(FilesBeside(), 0);
  }
  ASSERT_EQ(Run({"in.gguf", "out.gguf", "Q4_0"}).exit_code, 0);
  const Ran again = Run({"out.gguf", "again.gguf", "Q8_0"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("--allow-requantize"));
  const Ran allowed = Run({"out.gguf", "again.gguf", "Q8_0", "--allow-requantize"});
  EXPECT_EQ(allowed.exit_code, 0);
  EXPECT_THAT(allowed.err, HasSubstr("were quantised before"));
}

TEST_F(QuantizeProgramTest, Imatrix) {
  gguf::testing::ModelBuilder data("imatrix");
  std::vector<float> sums(256, 1);
  sums[3] = 500;
  data.AddF32("blk.0.ffn_down.weight.in_sum2", {256}, sums);
  data.AddF32("blk.0.ffn_down.weight.counts", {1}, std::vector<float>{1});
  const gguf::testing::Bytes bytes = data.Build();
  home_.Write("i.gguf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Ran ran = Run({"in.gguf", "out.gguf", "Q2_K", "--imatrix", "i.gguf"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("weighted"));
  EXPECT_THAT(ran.err, HasSubstr("1 tensors are unknown to the importance data"));
  EXPECT_EQ(Run({"in.gguf", "out.gguf", "Q2_K", "--imatrix", "in.gguf"}).exit_code, 2);
  const Ran over = Run({"in.gguf", "i.gguf", "Q2_K", "--imatrix", "i.gguf"});  // it is an input, too
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_THAT(over.err, HasSubstr("same file as an input"));
}

class MeasuredTest : public QuantizeProgramTest {
 protected:
  void SetUp() override {
    constexpr quantize::SynthShape kShape{.name = "measured",
                                          .architecture = "llama",
                                          .layers = 1,
                                          .d_model = 256,
                                          .d_ff = 256,
                                          .n_heads = 4,
                                          .n_kv_heads = 2,
                                          .head_dim = 64,
                                          .context_length = 64};
    ASSERT_TRUE(quantize::SynthesizeFile(kShape, **quantize::FindMix("F16"), {}, home_ / "in.gguf"));
    std::string text;
    for (int i = 0; i < 60; ++i) text += fmt::format("{} and {} are not {}. ", i, 7 * i % 13, i * i);
    home_.Write("text.txt", text);
  }
};

TEST_F(MeasuredTest, Feedback) {
  const Ran ran = Run({"in.gguf", "out.gguf", "Q3_K_M", "--feedback", "text.txt", "--chunk", "64"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  ASSERT_EQ(Run({"in.gguf", "plain.gguf", "Q3_K_M"}).exit_code, 0);
  EXPECT_EQ(std::filesystem::file_size(home_ / "out.gguf"), std::filesystem::file_size(home_ / "plain.gguf"));
  EXPECT_EQ(FilesBeside(), 1);
  EXPECT_EQ(Run({"in.gguf", "text.txt", "Q3_K_M", "--feedback", "text.txt"}).exit_code, 2)
      << "it is an input";
}

TEST_F(MeasuredTest, Fit) {
  const Ran ran =
      Run({"in.gguf", "out.gguf", "--fit", "300K", "--feedback", "text.txt", "--chunk", "64", "--json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto report = nlohmann::json::parse(ran.out);
  EXPECT_EQ(report["file_bytes"], std::filesystem::file_size(home_ / "out.gguf"));
  EXPECT_LE(report["file_bytes"], 300 * 1024);
  EXPECT_GT(report["fit"]["predicted_kl"], 0);
  EXPECT_GT(report["fit"]["measured_kl"], 0);
  EXPECT_EQ(FilesBeside(), 1);
  const Ran table = Run({"in.gguf", "out.gguf", "--fit", "400K", "--sample", "text.txt", "--probes", "3"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("KL divergence predicted"));
  // All of the model fits a phone.
  EXPECT_EQ(Run({"in.gguf", "out.gguf", "--fit", "phone-8gb", "--sample", "text.txt"}).exit_code, 0);
}

TEST_F(MeasuredTest, WrongUsageOfFit) {
  const std::pair<std::vector<std::string>, std::pair<int, std::string>> cases[] = {
      {{"in.gguf", "out.gguf", "Q4_0", "--fit", "1M", "--sample", "text.txt"}, {2, "one of the two"}},
      {{"in.gguf", "out.gguf", "--fit", "1M"}, {2, "--sample"}},
      {{"in.gguf", "out.gguf", "--fit", "walkman", "--sample", "text.txt"}, {1, "walkman"}},
      {{"in.gguf", "out.gguf", "--fit", "1K", "--sample", "text.txt"}, {3, "too little"}},
      {{"in.gguf", "out.gguf", "--fit", "1M", "--sample", "text.txt", "--probes", "0"}, {2, "--probes"}},
      {{"in.gguf", "out.gguf", "Q4_0", "--feedback", "nowhere.txt"}, {1, "nowhere.txt"}},
      {{"in.gguf", "out.gguf", "Q4_0", "--feedback", "text.txt", "--chunk", "0"}, {2, "chunks of 0"}}};
  for (const auto& wrong : cases) {
    const Ran ran = Run(wrong.first);
    EXPECT_EQ(ran.exit_code, wrong.second.first) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(wrong.second.second));
    EXPECT_EQ(FilesBeside(), 0);
  }
}

// Ctrl-C: 130, and nothing is left.
TEST_F(QuantizeProgramTest, Interrupted) {
  // Enough that it can't be done before the signal comes.
  model_.AddRandom("blk.1.ffn_down.weight", formats::DType::kF16, {4096, 4096});
  Write("in.gguf");
  testing::AtTerminal terminal(home_.path(), {"quantize", "in.gguf", "out.gguf", "IQ1_M", "-t", "1"});
  ASSERT_TRUE(terminal.WaitFor("quantising"));
  terminal.Type("\x03");
  EXPECT_EQ(terminal.Wait(), 130);
  EXPECT_EQ(FilesBeside(), 0);
}

}  // namespace
}  // namespace sluice::app
