// The library of models against a made-up home, with the folders of all programs in it.
#include "sluice/library.h"

#include <gmock/gmock.h>

#include "gguf/builder.h"
#include "platform/temp_folder.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::string TinyModel(std::string_view architecture = "llama", std::string_view type = "model") {
  gguf::testing::ModelBuilder model(architecture);
  model.metadata().SetString("general.type", type);
  model.metadata().SetU32("llama.context_length", 2048);
  model.AddRandom("token_embd.weight", formats::DType::kQ8_0, {64, 32});
  model.AddRandom("output_norm.weight", formats::DType::kF32, {64});
  const gguf::testing::Bytes bytes = model.Build();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const std::string kDigest(64, 'a');

std::string Manifest(const std::string& digest) {
  return R"({"schemaVersion":2,"layers":[)"
         R"({"mediaType":"application/vnd.ollama.image.license","digest":"sha256:00","size":1},)"
         R"({"mediaType":"application/vnd.ollama.image.model","digest":")" +
         digest + R"(","size":5}]})";
}

class LibraryTest : public testing::Test {
 protected:
  LibraryTest() {
    folders_.environment.home = home_.path();
    folders_.current_folder = home_ / "work";
    folders_.root = home_ / "root";
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const FoundModel& model : FindModels(folders_)) names.push_back(model.name);
    return names;
  }

  TempFolder home_;
  LibraryFolders folders_;
};

TEST_F(LibraryTest, NothingThere) { EXPECT_THAT(FindModels(folders_), IsEmpty()); }

TEST_F(LibraryTest, FindsModelsOfAllPrograms) {
  home_.Write(".local/share/sluice/models/mine.gguf", "12345");
  home_.Write("work/models/bundled.gguf", "1");
  home_.Write(".lmstudio/models/maker/Repo-GGUF/studio-Q4.gguf", "1");
  home_.Write(".cache/lm-studio/models/maker/old/old-studio.gguf", "1");
  home_.Write(".cache/huggingface/hub/models--org--name/snapshots/0123/hugging.gguf", "1");
  home_.Write(".cache/huggingface/hub/models--org--name/blobs/not-here.gguf", "1");
  home_.Write(".cache/huggingface/hub/datasets--org--name/snapshots/0123/not-here.gguf", "1");
  home_.Write(".cache/llama.cpp/org_some-GGUF_cached-Q8_0.gguf", "1");
  home_.Write(".ollama/models/manifests/registry.ollama.ai/library/llama3/8b", Manifest("sha256:" + kDigest));
  home_.Write(".ollama/models/blobs/sha256-" + kDigest, "123");
  EXPECT_THAT(Names(), ElementsAre("mine", "bundled", "old-studio", "studio-Q4", "hugging", "cached-Q8_0", "llama3:8b"));
  const auto models = FindModels(folders_);
  EXPECT_EQ(models[0].size_bytes, 5u);
  EXPECT_EQ(models[0].path, home_ / ".local/share/sluice/models/mine.gguf");
  EXPECT_EQ(models.back().path, home_ / (".ollama/models/blobs/sha256-" + kDigest));
  EXPECT_EQ(models.back().size_bytes, 3u);
  EXPECT_EQ(models.back().source, ModelSource::kOllama);
}

TEST_F(LibraryTest, FoldersCanBeMovedByVariables) {
  folders_.environment.sluice_models = home_ / "a";
  folders_.environment.hf_hub_cache = home_ / "b";
  folders_.environment.llama_cache = home_ / "c";
  folders_.environment.ollama_models = home_ / "d";
  home_.Write("a/one.gguf", "1");
  home_.Write("b/models--x--y/snapshots/r/two.gguf", "1");
  home_.Write("c/three.gguf", "1");
  home_.Write("d/manifests/hf.co/me/four/latest", Manifest("sha256:" + kDigest));
  home_.Write("d/blobs/sha256-" + kDigest, "1");
  EXPECT_THAT(Names(), ElementsAre("one", "two", "three", "hf.co/me/four:latest"));
}

TEST_F(LibraryTest, OllamaOfTheWholeSystem) {
  home_.Write("root/usr/share/ollama/.ollama/models/manifests/registry.ollama.ai/me/m/latest", Manifest("sha256:" + kDigest));
  home_.Write("root/usr/share/ollama/.ollama/models/blobs/sha256-" + kDigest, "1");
  EXPECT_THAT(Names(), ElementsAre("me/m:latest"));
}

TEST_F(LibraryTest, SplitModelAppearsOnceWithItsWholeSize) {
  home_.Write("work/models/big-00001-of-00003.gguf", "12");
  home_.Write("work/models/big-00002-of-00003.gguf", "345");
  home_.Write("work/models/big-00003-of-00003.gguf", "6");
  home_.Write("work/models/headless-00002-of-00002.gguf", "6");
  const auto models = FindModels(folders_);
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].name, "big");
  EXPECT_EQ(models[0].size_bytes, 6u);
  EXPECT_THAT(models[0].path, HasSubstr("big-00001-of-00003.gguf"));
}

TEST_F(LibraryTest, SameNamesAreToldApart) {
  home_.Write(".lmstudio/models/anna/Repo/m.gguf", "1");
  home_.Write(".lmstudio/models/bert/Repo/M.gguf", "1");
  home_.Write("work/models/m.gguf", "1");
  home_.Write("work/models/x/y/n.gguf", "1");
  home_.Write("work/models/x/y/z/n.gguf", "1");
  EXPECT_THAT(Names(), UnorderedElementsAre("anna/Repo/m", "bert/Repo/M", "./models/m", "x/y/n", "x/y/n~2"));
}

TEST_F(LibraryTest, OneFileBehindSeveralLinksIsOneModel) {
  const std::string blob = home_.Write("hub/models--o--n/blobs/abc", "1");
  folders_.environment.hf_hub_cache = home_ / "hub";
  for (const char* revision : {"r1", "r2"}) {
    const std::string folder = home_ / ("hub/models--o--n/snapshots/" + std::string(revision));
    std::filesystem::create_directories(folder);
    std::filesystem::create_symlink(blob, folder + "/m.gguf");
  }
  const auto models = FindModels(folders_);
  ASSERT_EQ(models.size(), 1u);
  EXPECT_THAT(models[0].path, HasSubstr("snapshots/r1/m.gguf"));
}

TEST_F(LibraryTest, LoopsAndBrokenLinksEnd) {
  home_.Write("work/models/m.gguf", "1");
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"})
    std::filesystem::create_directory_symlink(home_ / "work/models", home_ / ("work/models/" + std::string(name)));
  std::filesystem::create_symlink(home_ / "nowhere", home_ / "work/models/broken.gguf");
  EXPECT_THAT(Names(), ElementsAre("m"));
}

TEST_F(LibraryTest, HostileNamesComeOutClean) {
  home_.Write("work/models/a\x1b[2Jb\n\xff.gguf", "1");
  EXPECT_THAT(Names(), ElementsAre("a\uFFFD[2Jb\uFFFD\uFFFD"));
}

TEST_F(LibraryTest, BadManifestsAreLeftOut) {
  const std::string folder = ".ollama/models/manifests/registry.ollama.ai/library/m/";
  home_.Write(folder + "escape", Manifest("sha256:../../../../etc/passwd"));
  home_.Write(folder + "short", Manifest("sha256:abc"));
  home_.Write(folder + "no-blob", Manifest("sha256:" + std::string(64, 'b')));
  home_.Write(folder + "not-json", "{");
  home_.Write(folder + "number", "3");
  home_.Write(folder + "layers", R"({"layers":[3,{"mediaType":["application/vnd.ollama.image.model"]}]})");
  home_.Write(folder + "deep", std::string(500'000, '['));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(LibraryTest, FilesThatAreNoLanguageModelsByName) {
  home_.Write("work/models/mmproj-model-f16.gguf", "1");
  home_.Write("work/models/.hidden.gguf", "1");
  home_.Write("work/models/.gguf", "1");
  home_.Write("work/models/m.gguf.part", "1");
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(LibraryTest, SummarizesAHeader) {
  const auto summary = Summarize(home_.Write("m.gguf", TinyModel()));
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->architecture, "llama");
  EXPECT_EQ(summary->parameters, 64u * 32 + 64);
  EXPECT_EQ(summary->type, "Q8_0");
  EXPECT_EQ(summary->context_length, 2048u);
}

TEST_F(LibraryTest, AdaptersAndBrokenFilesHaveNoSummary) {
  EXPECT_EQ(Summarize(home_.Write("a.gguf", TinyModel("llama", "adapter"))).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(Summarize(home_.Write("p.gguf", TinyModel("clip"))).error().code, ErrorCode::kUnsupported);
  EXPECT_FALSE(Summarize(home_.Write("b.gguf", "GGUFrubbish")));
}

class FindByNameTest : public testing::Test {
 protected:
  std::string Find(std::string_view name) {
    const FoundModel* model = FindByName(models_, name, &ambiguous_);
    return model != nullptr ? model->name : "";
  }

  std::vector<FoundModel> models_{{"Qwen3-4B-Q4_K_M"}, {"Qwen3-8B-Q4_K_M"}, {"gemma-2-2b"}, {"gemma-2-2b-it"},
                                  {"llama3:8b"},       {"llama3:latest"}};
  std::vector<std::string> ambiguous_;
};

TEST_F(FindByNameTest, ExactBeforePrefixBeforePart) {
  EXPECT_EQ(Find("gemma-2-2b"), "gemma-2-2b");
  EXPECT_EQ(Find("GEMMA-2-2B.gguf"), "gemma-2-2b");
  EXPECT_EQ(Find("llama3"), "llama3:latest");
  EXPECT_EQ(Find("qwen3-4"), "Qwen3-4B-Q4_K_M");
  EXPECT_EQ(Find("2b-it"), "gemma-2-2b-it");
  EXPECT_THAT(ambiguous_, IsEmpty());
}

TEST_F(FindByNameTest, AmbiguousAndUnknown) {
  EXPECT_EQ(Find("qwen3"), "");
  EXPECT_THAT(ambiguous_, ElementsAre("Qwen3-4B-Q4_K_M", "Qwen3-8B-Q4_K_M"));
  EXPECT_EQ(Find("mistral"), "");
  EXPECT_THAT(ambiguous_, IsEmpty());
  EXPECT_EQ(Find(""), "");
}

}  // namespace
}  // namespace sluice
