// sluice eval: base runs and what is compared with them.
#include <filesystem>

#include "whole/fixture.h"

namespace sluice::whole {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class EvalTest : public ProgramTest {
 protected:
  void SetUp() override {
    ModelParts model = TinyLlama();
    Save(model);
    Spoil(model.At("output.weight"));
    Save(model, "other.gguf");
    std::string text;
    for (int i = 0; i < 40; ++i) text += fmt::format("this is sentence {} of some ", i);
    home_.Write("text.txt", text);
  }
  // Rounds the weights a little.
  static void Spoil(ModelParts::Tensor& tensor) {
    for (size_t i = 0; i < tensor.data.size(); i += 4) tensor.data[i] = tensor.data[i + 1] = std::byte{0};
  }
  Ran Eval(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "eval");
    return Run(arguments);
  }
  // What --json says of the divergence.
  nlohmann::json Divergence(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const Ran ran = Eval(std::move(arguments));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return nlohmann::json::parse(ran.out)["divergence"];
  }
};

TEST_F(EvalTest, ComparesWithABaseRun) {
  const Ran saved = Eval({"model.gguf", "--text", "text.txt", "-c", "64", "--save-base", "base.run"});
  ASSERT_EQ(saved.exit_code, 0) << saved.err;
  EXPECT_THAT(saved.out, HasSubstr("perplexity"));
  EXPECT_THAT(saved.err, HasSubstr("base.run"));

  // The run knows the text and the windows.
  const auto same = Divergence({"model.gguf", "--base", "base.run"});
  EXPECT_LT(same["kl"]["mean"], 1e-7);
  EXPECT_EQ(same["window"], 64);
  EXPECT_EQ(same["same_top"]["right"], same["same_top"]["total"]);
  EXPECT_NEAR(same["perplexity_ratio"]["value"], 1, 1e-4);
  const auto other = Divergence({"other.gguf", "--base", "base.run"});
  EXPECT_GT(other["kl"]["mean"], 1e-6);
  EXPECT_LE(other["kl"]["low"], other["kl"]["mean"]);
  EXPECT_LE(other["kl"]["median"], other["kl"]["quantile_99"]);
  EXPECT_LE(other["kl"]["quantile_99"], other["kl"]["max"]);

  // The text may be given again, and the base be run on the spot.
  EXPECT_EQ(Divergence({"other.gguf", "--base", "base.run", "--text", "text.txt"}), other);
  EXPECT_EQ(Divergence({"other.gguf", "--base-model", "model.gguf", "--text", "text.txt", "-c", "64"}),
            other);
  const Ran shown = Eval({"other.gguf", "--base", "base.run"});
  EXPECT_THAT(shown.out, HasSubstr("KL divergence"));
  EXPECT_THAT(shown.out, HasSubstr("same likeliest token"));
  EXPECT_THAT(shown.out, HasSubstr("against model.gguf"));
}

TEST_F(EvalTest, SaysWhatDoesNotMatch) {
  ASSERT_EQ(Eval({"model.gguf", "--text", "text.txt", "-c", "64", "--save-base", "base.run"}).exit_code, 0);
  home_.Write("other.txt", std::string(200, 'x'));
  const Ran text = Eval({"model.gguf", "--base", "base.run", "--text", "other.txt"});
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_THAT(text.err, HasSubstr("another text"));
  const Ran window = Eval({"model.gguf", "--base", "base.run", "--text", "text.txt", "-c", "32"});
  EXPECT_EQ(window.exit_code, 2);
  EXPECT_THAT(window.err, HasSubstr("windows of 64 tokens"));
  ModelParts renamed = TinyLlama();
  TinyVocabulary tokens;
  tokens.tokens.back() = "</thought>";
  tokens.WriteTo(renamed.metadata);
  Save(renamed, "renamed.gguf");
  const Ran vocabulary = Eval({"renamed.gguf", "--base", "base.run"});
  EXPECT_EQ(vocabulary.exit_code, 2);
  EXPECT_THAT(vocabulary.err, HasSubstr("another vocabulary"));
  EXPECT_EQ(Eval({"model.gguf", "--base", "text.txt"}).exit_code, 1);
}

TEST_F(EvalTest, WrongUsage) {
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"model.gguf"},
           {"model.gguf", "--save-base", "b"},
           {"model.gguf", "--base-model", "other.gguf"},
           {"model.gguf", "--text", "text.txt", "--base", "a", "--save-base", "b"},
           {"model.gguf", "--text", "text.txt", "--kv-sweep", "--save-base", "b"}}) {
    const Ran ran = Eval(wrong);
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_THAT(ran.err, Not(IsEmpty()));
  }
  EXPECT_FALSE(std::filesystem::exists(home_ / "b"));
  for (const char* input : {"model.gguf", "text.txt"}) {
    const Ran over = Eval({"model.gguf", "--text", "text.txt", "-c", "64", "--save-base", input});
    EXPECT_EQ(over.exit_code, 2);
    EXPECT_THAT(over.err, HasSubstr("same file as an input"));
  }
}

TEST_F(EvalTest, TheSweepShowsDivergence) {
  const Ran sweep =
      Eval({"model.gguf", "--text", "text.txt", "-c", "64", "--chunks", "2", "--kv-sweep", "--json"});
  ASSERT_EQ(sweep.exit_code, 0) << sweep.err;
  const auto rows = nlohmann::json::parse(sweep.out)["kv_sweep"];
  EXPECT_FALSE(rows[0].contains("kl"));
  EXPECT_LT(rows[1]["kl"], rows.back()["kl"]);  // f32 is nearer to f16 than q4_0
  EXPECT_GT(rows.back()["same_top"], 0);
}

}  // namespace
}  // namespace sluice::whole
