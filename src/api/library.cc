#include "sluice/library.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "api/model_folders.h"
#include "gguf/reader.h"

namespace sluice {

namespace {

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Models of the same name get the folder or the program they come from in front, and a number where that is not enough.
std::vector<FoundModel> WithUniqueNames(std::vector<api::Candidate> candidates) {
  std::map<std::string, int> count;
  for (const api::Candidate& candidate : candidates) ++count[LowerCase(candidate.model.name)];
  std::map<std::string, int> taken;
  std::vector<FoundModel> models;
  for (api::Candidate& candidate : candidates) {
    std::string& name = candidate.model.name;
    if (count[LowerCase(name)] > 1) name = candidate.qualifier + "/" + name;
    const std::string plain = name;
    for (int n = 2; ++taken[LowerCase(name)] > 1; ++n) name = fmt::format("{}~{}", plain, n);
    models.push_back(std::move(candidate.model));
  }
  return models;
}

}  // namespace

std::string_view Name(ModelSource source) {
  switch (source) {
    case ModelSource::kModelsFolder: return "models folder";
    case ModelSource::kCurrentFolder: return "./models";
    case ModelSource::kLmStudio: return "LM Studio";
    case ModelSource::kHuggingFace: return "Hugging Face";
    case ModelSource::kLlamaCpp: return "llama.cpp";
    case ModelSource::kOllama: return "Ollama";
  }
  return "";
}

std::vector<FoundModel> FindModels(const LibraryFolders& folders) {
  std::vector<FoundModel> models = WithUniqueNames(api::SearchModelFolders(folders));
  std::ranges::sort(models, [](const FoundModel& a, const FoundModel& b) {
    return std::tie(a.source, a.name, a.path) < std::tie(b.source, b.name, b.path);
  });
  return models;
}

Result<ModelSummary> Summarize(const std::string& path) {
  SLUICE_TRY_ASSIGN(const gguf::GgufFile file, gguf::GgufFile::Open(path, gguf::Purpose::kInspect));
  const gguf::Metadata& metadata = file.metadata();
  SLUICE_TRY_ASSIGN(const std::string_view kind, metadata.GetStringOr("general.type", "model"));
  SLUICE_TRY_ASSIGN(const std::string_view architecture, metadata.GetString("general.architecture"));
  if (kind != "model" || architecture == "clip") {
    return Fail(ErrorCode::kUnsupported, "{}: not a language model but one of type {}", path,
                kind != "model" ? kind : architecture);
  }
  ModelSummary summary{.architecture = std::string(architecture)};
  if (const auto length = metadata.GetU64(summary.architecture + ".context_length")) summary.context_length = *length;
  std::map<std::string_view, uint64_t> bytes;
  for (const gguf::Tensor& tensor : file.tensors()) {
    summary.parameters += tensor.elements();
    if (tensor.traits != nullptr) bytes[tensor.traits->name] += tensor.size_bytes;
  }
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& pair) { return pair.second; });
  if (most != bytes.end()) summary.type = most->first;
  return summary;
}

const FoundModel* FindByName(const std::vector<FoundModel>& models, std::string_view name,
                             std::vector<std::string>* ambiguous) {
  ambiguous->clear();
  std::string wanted = LowerCase(name);
  if (wanted.ends_with(".gguf")) wanted.resize(wanted.size() - 5);
  if (wanted.empty()) return nullptr;
  for (const FoundModel& model : models) {
    if (model.name == name) return &model;
  }
  using Matches = bool (*)(const std::string& candidate, const std::string& wanted);
  constexpr Matches kWays[] = {
      [](const std::string& candidate, const std::string& text) { return candidate == text; },
      [](const std::string& candidate, const std::string& text) { return candidate == text + ":latest"; },
      [](const std::string& candidate, const std::string& text) { return candidate.starts_with(text); },
      [](const std::string& candidate, const std::string& text) { return candidate.find(text) != std::string::npos; },
  };
  for (const Matches matches : kWays) {
    const FoundModel* found = nullptr;
    for (const FoundModel& model : models) {
      if (!matches(LowerCase(model.name), wanted)) continue;
      found = &model;
      ambiguous->push_back(model.name);
    }
    if (ambiguous->size() > 1) return nullptr;
    ambiguous->clear();
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace sluice
