// Wrong model files through every command that opens one: an error that names the trouble, and never a crash.
#include <filesystem>
#include <fstream>

#include "whole/running.h"

namespace sluice::whole {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

class FilesTest : public ProgramTest {
 protected:
  // Through run, logits, bench, eval, tokenize, template and inspect; the exit codes of those that load weights are
  // all `loading`, those of the others anything but a crash.
  void ExpectEverywhere(const std::string& model, int loading, const std::string& words) {
    const std::string text = home_.Write("text.txt", "some text");
    for (const Arguments& arguments : std::vector<Arguments>{
             {"run", model, "hi", "-n", "1"}, {"logits", model, "-p", "hi", "-o", home_ / "out.bin"},
             {"bench", model, "-p", "4", "-n", "2", "-r", "1"}, {"eval", model, "--ppl", text}}) {
      const Ran ran = Run(arguments);
      EXPECT_EQ(ran.exit_code, loading) << arguments[0] << "\n" << ran.err;
      EXPECT_THAT(ran.err, HasSubstr(words)) << arguments[0];
    }
    for (const Arguments& arguments : std::vector<Arguments>{
             {"tokenize", model, "hi"}, {"template", model}, {"inspect", model}, {"inspect", model, "--json"}, {"list"}})
      EXPECT_THAT(Run(arguments).exit_code, AnyOf(0, 1, 2)) << arguments[0];
  }

  // The file of a sound model with the type id of one tensor replaced.
  std::string WithTypeId(const std::string& name, uint32_t type_id) {
    std::string file = TinyLlama().BuildString();
    const size_t at = file.find(name);
    SLUICE_CHECK(at != std::string::npos);
    uint32_t n_dims;
    std::memcpy(&n_dims, file.data() + at + name.size(), 4);
    std::memcpy(file.data() + at + name.size() + 4 + 8 * n_dims, &type_id, 4);
    return file;
  }
};

// P05.
TEST_F(FilesTest, TruncatedFiles) {
  const std::string whole = TinyLlama().BuildString();
  for (const size_t size : {whole.size() - 1, whole.size() * 2 / 3}) {
    const std::string path = home_.Write("cut.gguf", whole.substr(0, size));
    ExpectEverywhere(path, 1, "cut.gguf");
    const Ran inspected = Run({"inspect", path});
    EXPECT_EQ(inspected.exit_code, 1);
    EXPECT_THAT(inspected.err, AllOf(HasSubstr("tensor"), HasSubstr(std::to_string(size))));
  }
  for (const size_t size : {size_t{0}, size_t{4}, size_t{23}, size_t{500}}) {
    const Ran inspected = Run({"inspect", home_.Write("cut.gguf", whole.substr(0, size))});
    EXPECT_EQ(inspected.exit_code, 1) << size;
    EXPECT_THAT(inspected.err, HasSubstr("cut.gguf")) << size;
  }
}

TEST_F(FilesTest, AFileThatShrinksWhileItIsUsed) {
  for (const char* residency : {"resident", "lru", "mmap"}) {
    const std::string path = Save(TinyLlama(100'000));
    Running run(home_.path(),
                {"run", path, "hi", "-c", "100000", "-n", "-1", "--ignore-eos", "--residency", residency});
    run.EndInput();
    run.WaitForOutput();
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 8);
    EXPECT_EQ(run.Wait(), 1) << residency;
    std::ifstream said(home_ / ".stderr");
    EXPECT_THAT(std::string(std::istreambuf_iterator<char>(said), {}),
                AnyOf(HasSubstr("tensor"), HasSubstr("become shorter")))
        << residency;
  }
}

// P11.
TEST_F(FilesTest, UnknownTypesAreNamedAndStillListed) {
  for (const uint32_t type_id : {31u, 200u, UINT32_MAX}) {
    const std::string path = home_.Write("odd.gguf", WithTypeId("blk.1.ffn_up.weight", type_id));
    ExpectEverywhere(path, 1, "blk.1.ffn_up.weight");
    EXPECT_THAT(Run({"run", path, "hi"}).err, HasSubstr(std::to_string(type_id)));
    const Ran inspected = Run({"inspect", path, "--tensors"});
    EXPECT_THAT(inspected.out, AllOf(HasSubstr("blk.0.attn_q.weight"), HasSubstr("blk.1.ffn_up.weight")));
    EXPECT_FALSE(nlohmann::json::parse(Run({"inspect", path, "--json"}).out, nullptr, false).is_discarded());
  }
}

// P10.
TEST_F(FilesTest, SpecialIdsOutOfRangeCostAWarning) {
  ModelParts parts = TinyLlama();
  parts.metadata.SetU32("tokenizer.ggml.eos_token_id", UINT32_MAX);
  parts.metadata.SetU32("tokenizer.ggml.bos_token_id", 292);
  const std::string path = Save(parts);
  const Ran ran = Run({"run", path, "hi", "-n", "2", "--ignore-eos"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, AllOf(HasSubstr("4294967295"), HasSubstr("292")));
  EXPECT_THAT(Run({"tokenize", path, "hi"}).err, HasSubstr("4294967295"));
}

// P13.
TEST_F(FilesTest, AnUnknownPreTokenizerIsSaidOnceAndCanBeOverridden) {
  ModelParts parts = TinyLlama();
  parts.metadata.SetString("tokenizer.ggml.model", "gpt2");
  parts.metadata.SetStrings("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  for (const char* pre : {"", "nonsense"}) {
    if (*pre != 0) parts.metadata.SetString("tokenizer.ggml.pre", pre);
    const std::string path = Save(parts);
    const Ran ran = Run({"tokenize", path, "They're 1234567 d'été  \n\n x"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("pre")) << pre;
    const Ran loaded = Run({"run", path, "hi", "-n", "1"});
    EXPECT_EQ(loaded.exit_code, 0) << loaded.err;
    EXPECT_THAT(loaded.err, HasSubstr("pre"));
  }
  const std::string path = Save(parts);
  const Ran ran = Run({"tokenize", path, "hi", "--override-kv", "tokenizer.ggml.pre=str:llama-bpe"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.err.find("nonsense"), std::string::npos) << ran.err;
}

TEST_F(FilesTest, ArchitecturesThatDoNotRunAreNamed) {
  ModelParts experts = TinyLlama();
  experts.metadata.SetU32("llama.expert_count", 8);
  ExpectEverywhere(Save(experts), 1, "mixtures of experts");
  ModelParts other = TinyLlama();
  other.metadata.SetString("general.architecture", "perceptron");
  ExpectEverywhere(Save(other), 1, "perceptron");
}

TEST_F(FilesTest, VocabularyOnlyFilesSayWhatIsMissing) {
  ModelParts parts = TinyLlama();
  parts.tensors.clear();
  const std::string path = Save(parts);
  EXPECT_THAT(Run({"run", path, "hi"}).err, HasSubstr("token_embd.weight"));
  EXPECT_EQ(Run({"tokenize", path, "hi"}).exit_code, 0);
}

TEST_F(FilesTest, LongValuesAreCutBetweenCharacters) {
  ModelParts parts = TinyLlama();
  // Of quotes, each of two bytes in JSON behind the opening quote, 59 fit into 120 bytes.
  parts.metadata.SetString("general.description", std::string(100, '"'));
  parts.metadata.SetString("general.author", "x" + std::string(60, ' ') + "é漢é漢é漢é漢é漢é漢é漢é漢é漢é漢é漢é漢é漢é漢");
  const std::string path = Save(parts);
  const std::string out = Run({"inspect", path}).out;
  std::string quotes;
  for (int i = 0; i < 59; ++i) quotes += "\\\"";
  EXPECT_THAT(out, HasSubstr(" \"" + quotes + "…\n"));
  EXPECT_THAT(out, AnyOf(HasSubstr("é…\n"), HasSubstr("漢…\n")));
  EXPECT_THAT(Run({"inspect", path, "--all"}).out, HasSubstr(quotes + quotes.substr(0, 82) + "\"\n"));
}

TEST_F(FilesTest, MessagesNestedTooDeepAreAMistakeOfTheirs) {
  const std::string model = Save(TinyLlama());
  for (const std::string& messages : {std::string(100'000, '['), std::string("nonsense"), std::string("{}")}) {
    const Ran ran = Run({"template", model, "--messages", home_.Write("messages.json", messages)});
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("messages"));
  }
}

TEST_F(FilesTest, WhatIsNoFileIsSaid) {
  for (const std::string& path : {home_ / "nowhere.gguf", home_.path(), std::string("/dev/null")}) {
    const Ran ran = Run({"run", path, "hi"});
    EXPECT_THAT(ran.exit_code, AnyOf(1, 2)) << path;
    EXPECT_THAT(ran.err, HasSubstr(path));
    EXPECT_THAT(ran.out, IsEmpty());
  }
}

// Nothing in a file reaches the terminal as a control sequence.
TEST_F(FilesTest, NamesInFilesAreShownClean) {
  ModelParts parts = TinyLlama();
  parts.metadata.SetString("general.name", "x\x1b[2Jy");
  parts.metadata.SetString("general.architecture", "a\x1b[2Jb");
  const std::string path = Save(parts);
  for (const Arguments& arguments : std::vector<Arguments>{{"run", path, "hi"}, {"inspect", path}, {"list"}}) {
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.err.find('\x1b'), std::string::npos) << arguments[0];
    EXPECT_EQ(ran.out.find('\x1b'), std::string::npos) << arguments[0];
  }
}

}  // namespace
}  // namespace sluice::whole
