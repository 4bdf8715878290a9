// Library: the models on this device, in Sluice's own folder and, read in place, in those of other programs.
//
// Free functions over plain values; any thread. Folders and files are hostile: how deep and how many are looked at is
// bounded, names come out as clean UTF-8, and what can't be read is left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "platform/paths.h"

namespace sluice {

enum class ModelSource { kModelsFolder, kCurrentFolder, kLmStudio, kHuggingFace, kLlamaCpp, kOllama };
// "models folder", "./models", "LM Studio", "Hugging Face", "llama.cpp", "Ollama".
std::string_view Name(ModelSource source);

struct FoundModel {
  std::string name;         // short, and unique in the list
  std::string path;         // a GGUF file, or the first part of a split one
  uint64_t size_bytes = 0;  // of all parts that are there
  ModelSource source = ModelSource::kModelsFolder;
};

struct LibraryFolders {
  platform::Environment environment;
  std::string current_folder = ".";  // its folder `models` is looked at
  std::string root;                  // in front of the system-wide folders of other programs; for tests
};

// All models, by source, then by name. A file that several folders lead to is listed once, as is a split model. No
// file is opened but Ollama's manifests.
std::vector<FoundModel> FindModels(const LibraryFolders& folders);

// What the header of a model file says.
struct ModelSummary {
  std::string architecture;     // "llama"
  uint64_t parameters = 0;
  std::string type;             // the one that most bytes are in: "Q4_K"
  uint64_t context_length = 0;  // 0 when the file doesn't say
};
// Errors: those of opening a GGUF file; kUnsupported for one that is no language model (an adapter, a projector).
Result<ModelSummary> Summarize(const std::string& path);

// The model that someone means by `name`: the one of this name, whatever the case, with or without ".gguf" or
// ":latest"; else the only one whose name begins with it; else the only one whose name contains it. Null when there
// is none; `*ambiguous` then holds the names among which there is no choosing (empty: nothing matches).
const FoundModel* FindByName(const std::vector<FoundModel>& models, std::string_view name,
                             std::vector<std::string>* ambiguous);

}  // namespace sluice
