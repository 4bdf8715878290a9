// sluice pack, split, merge and verify: the same model in other files, and what is wrong with one.
#include <filesystem>
#include <fstream>

#include "gguf/reader.h"
#include "whole/fixture.h"

namespace sluice::whole {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RepackTest : public ProgramTest {
 protected:
  void SetUp() override { Save(TinyLlama()); }
  // The ids that a model answers with.
  nlohmann::json Answer(const std::string& model, const Arguments& more = {}) {
    Arguments arguments{"once upon a time", "-n", "24", "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunJson(home_ / model, arguments)["text"];
  }
  std::string Contents(const std::string& name) const {
    std::ifstream file(home_ / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void Succeed(const Arguments& arguments) {
    const Ran ran = Run(arguments);
    ASSERT_EQ(ran.exit_code, 0) << arguments[0] << "\n" << ran.err << ran.out;
  }
  size_t FileCount(std::string_view prefix) const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(home_.path()))
      count += entry.path().filename().string().starts_with(prefix) ? 1 : 0;
    return count;
  }
};

TEST_F(RepackTest, APackedModelSaysTheSameFromEverywhere) {
  Succeed({"pack", "model.gguf", "packed.gguf"});
  const nlohmann::json answer = Answer("model.gguf");
  EXPECT_EQ(Answer("packed.gguf"), answer);
  EXPECT_EQ(Answer("packed.gguf", {"--residency", "lru", "--lru-blocks", "1"}), answer);
  EXPECT_EQ(Answer("packed.gguf", {"--residency", "pin"}), answer);
  const gguf::GgufFile packed = *gguf::GgufFile::Open(home_ / "packed.gguf");
  EXPECT_EQ(packed.alignment(), 4096u);
  // Vectors first, then the embedding, then what a pass reads, the output last.
  std::vector<std::string_view> names;
  for (const gguf::Tensor& tensor : packed.tensors()) names.push_back(tensor.name);
  ASSERT_EQ(names.size(), 21u);
  EXPECT_EQ(names[4], "output_norm.weight");
  EXPECT_EQ(names[5], "token_embd.weight");
  EXPECT_EQ(names[6], "blk.0.attn_q.weight");
  EXPECT_EQ(names[12], "blk.0.ffn_down.weight");
  EXPECT_EQ(names[13], "blk.1.attn_q.weight");
  EXPECT_EQ(names[20], "output.weight");
}

TEST_F(RepackTest, SplitAndMergedItIsTheSameFile) {
  Succeed({"pack", "model.gguf", "packed.gguf"});
  Succeed({"split", "packed.gguf", "parts", "--max-size", "64K"});
  EXPECT_GT(FileCount("parts-"), 2u);
  const std::string first = gguf::ShardPath("parts", 1, static_cast<uint32_t>(FileCount("parts-")));
  EXPECT_EQ(Answer(first), Answer("model.gguf"));
  Succeed({"verify", first});
  Succeed({"merge", first, "merged.gguf"});
  EXPECT_EQ(Contents("merged.gguf"), Contents("packed.gguf"));
  // Once more over what is there, and over an input.
  EXPECT_EQ(Run({"split", "packed.gguf", "parts.gguf", "--max-size", "64K"}).exit_code, 2);
  const Ran over = Run({"merge", first, first});
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_THAT(over.err, HasSubstr("same file as an input"));
}

TEST_F(RepackTest, PackEditsMetadata) {
  Succeed({"pack", "model.gguf", "packed.gguf", "--set", "general.name=str:renamed", "--set",
           "llama.context_length=64", "--remove", "tokenizer.chat_template"});
  const gguf::GgufFile packed = *gguf::GgufFile::Open(home_ / "packed.gguf");
  EXPECT_EQ(*packed.metadata().GetString("general.name"), "renamed");
  EXPECT_EQ(*packed.metadata().GetU32("llama.context_length"), 64u);
  EXPECT_FALSE(packed.metadata().Has("tokenizer.chat_template"));
  Succeed({"verify", "packed.gguf"});
  for (const Arguments& wrong : std::vector<Arguments>{{"--remove", "general.architecture"},
                                                       {"--remove", "no.such.key"},
                                                       {"--set", "general.alignment=int:64"},
                                                       {"--set", "general.name"},
                                                       {"--alignment", "100"}}) {
    Arguments arguments{"pack", "model.gguf", "wrong.gguf"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(Run(arguments).exit_code, 2) << wrong[1];
  }
  EXPECT_EQ(FileCount("wrong"), 0u);
}

TEST_F(RepackTest, AFamilyThatIsNotKnownKeepsItsOrder) {
  ModelParts model = TinyLlama();
  model.metadata.SetString("general.architecture", "unheard-of");
  Save(model);
  const Ran ran = Run({"pack", "model.gguf", "packed.gguf"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("tensors stay in the order they have"));
  EXPECT_EQ(gguf::GgufFile::Open(home_ / "packed.gguf")->tensors()[0].name, "token_embd.weight");
  const Ran verified = Run({"verify", "packed.gguf"});
  EXPECT_EQ(verified.exit_code, 0);
  EXPECT_THAT(verified.out, HasSubstr("remark: "));
}

TEST_F(RepackTest, VerifyFindsAChangedByte) {
  Succeed({"verify", "model.gguf"});
  Succeed({"pack", "model.gguf", "packed.gguf"});
  EXPECT_THAT(Run({"verify", "packed.gguf"}).out,
              AllOf(HasSubstr("compared with their checksums"), HasSubstr("all is well")));
  const gguf::Tensor up = *gguf::GgufFile::Open(home_ / "packed.gguf")->Find("blk.1.ffn_up.weight");
  std::string bytes = Contents("packed.gguf");
  bytes[up.offset + 77] ^= 1;
  home_.Write("damaged.gguf", bytes);
  const Ran damaged = Run({"verify", "damaged.gguf"});
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.out, AllOf(HasSubstr("tensor blk.1.ffn_up.weight: its bytes have changed"),
                                 HasSubstr("1 problem\n"), Not(HasSubstr("blk.0"))));
  const auto json = nlohmann::json::parse(Run({"verify", "damaged.gguf", "--json"}).out);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["problems"].size(), 1u);

  bytes = Contents("packed.gguf");
  bytes[bytes.find("tiny")] = 'T';  // general.name
  home_.Write("edited.gguf", bytes);
  EXPECT_THAT(Run({"verify", "edited.gguf"}).out, HasSubstr("metadata, or the tensors' names"));
}

// P60: a scale that is no number would spoil every answer.
TEST_F(RepackTest, VerifyFindsScalesThatAreNoNumbers) {
  ModelParts model = TinyLlama();
  ModelParts::Tensor& gate = model.At("blk.0.ffn_gate.weight");
  gate.dtype = DType::kQ8_0;
  gate.data = Bytes(64 * 34);
  const uint16_t infinity = 0x7c00, nan = 0x7e00;
  std::memcpy(gate.data.data() + 3 * 34, &infinity, 2);
  std::memcpy(gate.data.data() + 9 * 34, &nan, 2);
  Save(model);
  const Ran ran = Run({"verify", "model.gguf"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(
      ran.out,
      HasSubstr(
          "tensor blk.0.ffn_gate.weight: 64 weights are NaN or infinite, the first at row 3, column 0"));
}

TEST_F(RepackTest, VerifyLooksAtHeaderFamilyAndTokenizer) {
  const std::string whole = Contents("model.gguf");
  home_.Write("cut.gguf", whole.substr(0, whole.size() - 5000));
  const Ran cut = Run({"verify", "cut.gguf"});
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_THAT(cut.out, HasSubstr("tensor output.weight"));
  ModelParts missing = TinyLlama();
  missing.Remove("blk.1.attn_k.weight");
  Save(missing, "missing.gguf");
  EXPECT_THAT(Run({"verify", "missing.gguf"}).out, HasSubstr("tensor blk.1.attn_k.weight: is missing"));
  ModelParts silent = TinyLlama();
  silent.metadata.SetF32s("tokenizer.ggml.scores", std::vector<float>(3));
  Save(silent, "scores.gguf");
  EXPECT_EQ(Run({"verify", "scores.gguf"}).exit_code, 1);
  home_.Write("text.gguf", "not a model");
  EXPECT_EQ(Run({"verify", "text.gguf"}).exit_code, 1);
}

}  // namespace
}  // namespace sluice::whole
