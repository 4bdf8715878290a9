// Formats, from the programs' own documentation:
//   LM Studio      models/PUBLISHER/REPOSITORY/FILE.gguf
//   Hugging Face   hub/models--ORG--NAME/snapshots/REVISION/…/FILE.gguf, symbolic links into blobs/
//   llama.cpp      ORG_NAME_FILE.gguf
//   Ollama         manifests/HOST/NAMESPACE/MODEL/TAG (JSON that names layers by digest), blobs/sha256-DIGEST
#include "api/model_folders.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "platform/file.h"
#include "text/utf8.h"

namespace sluice::api {

namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 6;            // of folders below the one looked at
constexpr size_t kMaxEntries = 20'000;  // looked at in one tree
constexpr uint64_t kMaxManifestBytes = 1 << 20;
constexpr size_t kMaxNameBytes = 200;

// A file name as text that may be shown: valid UTF-8 without control characters.
std::string CleanName(std::string_view name) {
  std::string clean;
  while (!name.empty() && clean.size() < kMaxNameBytes) {
    const text::Utf8Step step = text::DecodeUtf8(name);
    name.remove_prefix(step.size);
    const bool control = step.code_point < 0x20 || (step.code_point >= 0x7f && step.code_point < 0xa0);
    text::AppendUtf8(control ? text::kReplacementCharacter : step.code_point, &clean);
  }
  return clean;
}

std::vector<std::string> SplitAt(std::string_view text, std::string_view separator) {
  std::vector<std::string> pieces;
  for (;;) {
    const size_t at = text.find(separator);
    pieces.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + separator.size());
  }
}

// "model-00002-of-00003" → model, 2.
struct ShardName {
  std::string_view prefix;
  int part;
};
std::optional<ShardName> ParseShardName(std::string_view stem) {
  constexpr size_t kSuffix = std::string_view("-00001-of-00001").size();
  if (stem.size() <= kSuffix) return std::nullopt;
  const std::string_view suffix = stem.substr(stem.size() - kSuffix);
  int part = 0;
  for (size_t i = 0; i < kSuffix; ++i) {
    const char expected = std::string_view("-NNNNN-of-NNNNN")[i];
    const bool digit = suffix[i] >= '0' && suffix[i] <= '9';
    if (expected == 'N' ? !digit : suffix[i] != expected) return std::nullopt;
    if (i < 6 && digit) part = part * 10 + (suffix[i] - '0');
  }
  return ShardName{stem.substr(0, stem.size() - kSuffix), part};
}

class Search {
 public:
  // Adds the GGUF files in and below a folder.
  void AddTree(const std::string& folder, ModelSource source) {
    entries_left_ = kMaxEntries;
    Walk(folder, {}, source);
  }

  // Adds the models that the manifests of an Ollama store name.
  void AddOllama(const std::string& store) {
    entries_left_ = kMaxEntries;
    WalkManifests(store, store + "/manifests", {});
  }

  std::vector<Candidate> Take() { return std::move(candidates_); }

 private:
  // What is in a folder, in the order of names. Empty when it can't be read; ends early at the bound.
  std::vector<fs::directory_entry> List(const std::string& folder) {
    std::vector<fs::directory_entry> entries;
    std::error_code error;
    fs::directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::directory_iterator() && entries_left_ > 0; at.increment(error), --entries_left_) {
      entries.push_back(*at);
    }
    std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) { return entry.path().native(); });
    return entries;
  }

  // `below`: names of the folders between the one that the search began at and this one.
  void Walk(const std::string& folder, const std::vector<std::string>& below, ModelSource source) {
    const std::vector<fs::directory_entry> entries = List(folder);
    for (const fs::directory_entry& entry : entries) {
      std::error_code error;
      const std::string name = entry.path().filename().native();
      if (entry.is_directory(error)) {
        if (below.size() >= kMaxDepth || name.starts_with('.') || !MayHoldModels(name, below.size(), source)) continue;
        std::vector<std::string> deeper = below;
        deeper.push_back(name);
        Walk(entry.path().native(), deeper, source);
      } else if (entry.is_regular_file(error)) {
        AddFile(entry, entries, below, source);
      }
    }
  }

  // The Hugging Face cache holds much else, data sets and the blobs themselves, under names without an ending.
  static bool MayHoldModels(const std::string& folder, size_t depth, ModelSource source) {
    if (source != ModelSource::kHuggingFace) return true;
    return depth == 0 ? folder.starts_with("models--") : depth > 1 || folder == "snapshots";
  }

  void AddFile(const fs::directory_entry& entry, const std::vector<fs::directory_entry>& siblings,
               const std::vector<std::string>& below, ModelSource source) {
    std::string stem = entry.path().filename().native();
    if (stem.size() <= 5 || !stem.ends_with(".gguf") || stem.starts_with('.') || stem.starts_with("mmproj")) return;
    stem.resize(stem.size() - 5);
    uint64_t size = FileSize(entry);
    std::string name = stem;
    if (const auto shard = ParseShardName(stem)) {
      if (shard->part != 1) return;
      name = shard->prefix;
      size = 0;
      for (const fs::directory_entry& sibling : siblings) {
        const std::string file = sibling.path().filename().native();
        if (!file.ends_with(".gguf")) continue;
        const auto other = ParseShardName(std::string_view(file).substr(0, file.size() - 5));
        if (other && other->prefix == shard->prefix) size += FileSize(sibling);
      }
    }
    Add(ShortName(name, source), Qualifier(below, source), entry.path().native(), size, source);
  }

  static uint64_t FileSize(const fs::directory_entry& entry) {
    std::error_code error;
    const uint64_t size = entry.file_size(error);
    return error ? 0 : size;
  }

  // llama.cpp puts ORG_NAME_ in front of the file's own name; NAME mostly ends with "-GGUF".
  static std::string ShortName(const std::string& name, ModelSource source) {
    if (source != ModelSource::kLlamaCpp) return name;
    for (const std::string_view end : {"-GGUF_", "-gguf_"}) {
      const size_t at = name.find(end);
      if (at != std::string::npos && at + end.size() < name.size()) return name.substr(at + end.size());
    }
    return name;
  }

  static std::string Qualifier(const std::vector<std::string>& below, ModelSource source) {
    if (source == ModelSource::kHuggingFace && !below.empty() && below[0].starts_with("models--")) {
      const std::vector<std::string> names = SplitAt(below[0], "--");
      return names.size() >= 3 ? names[1] + "/" + names[2] : names[1];
    }
    if (below.empty()) return std::string(Name(source));
    return below.size() == 1 ? below[0] : below[0] + "/" + below[1];
  }

  // `below`: host, namespace, model.
  void WalkManifests(const std::string& store, const std::string& folder, const std::vector<std::string>& below) {
    for (const fs::directory_entry& entry : List(folder)) {
      std::error_code error;
      const std::string name = entry.path().filename().native();
      if (name.starts_with('.')) continue;
      if (entry.is_directory(error) && below.size() < kMaxDepth) {
        std::vector<std::string> deeper = below;
        deeper.push_back(name);
        WalkManifests(store, entry.path().native(), deeper);
      } else if (entry.is_regular_file(error) && below.size() >= 2) {
        AddManifest(store, entry.path().native(), below, name);
      }
    }
  }

  void AddManifest(const std::string& store, const std::string& path, const std::vector<std::string>& below,
                   const std::string& tag) {
    const std::optional<std::string> digest = ModelDigest(path);
    if (!digest) return;
    std::string name;
    for (size_t i = 0; i < below.size(); ++i) {
      const bool usual = (i == 0 && below[i] == "registry.ollama.ai") || (i == 1 && below[i] == "library");
      if (!usual) name += (name.empty() ? "" : "/") + below[i];
    }
    for (const char* separator : {"-", ":"}) {  // older versions kept the colon
      const fs::directory_entry blob(store + "/blobs/sha256" + separator + *digest, ignored_);
      if (!blob.is_regular_file(ignored_)) continue;
      Add(name + ":" + tag, "ollama", blob.path().native(), FileSize(blob), ModelSource::kOllama);
      return;
    }
  }

  static std::string StringAt(const nlohmann::json& object, const char* key) {
    if (!object.is_object()) return "";
    const auto at = object.find(key);
    return at != object.end() && at->is_string() ? at->get<std::string>() : "";
  }

  // The hexadecimal digits of the layer with the weights.
  static std::optional<std::string> ModelDigest(const std::string& manifest) {
    const Result<std::string> text = platform::ReadWholeFile(manifest, kMaxManifestBytes);
    if (!text) return std::nullopt;
    const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
    if (!json.is_object() || !json.contains("layers") || !json["layers"].is_array()) return std::nullopt;
    for (const nlohmann::json& layer : json["layers"]) {
      if (StringAt(layer, "mediaType") != "application/vnd.ollama.image.model") continue;
      const std::string named = StringAt(layer, "digest");
      constexpr std::string_view kPrefix = "sha256:";
      if (!named.starts_with(kPrefix) || named.size() != kPrefix.size() + 64) return std::nullopt;
      const std::string digits = named.substr(kPrefix.size());
      if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
      return digits;
    }
    return std::nullopt;
  }

  void Add(const std::string& name, const std::string& qualifier, const std::string& path, uint64_t size,
           ModelSource source) {
    const fs::path real = fs::canonical(path, ignored_);
    if (real.empty() || !seen_.insert(real.native()).second) return;
    candidates_.push_back({{CleanName(name), path, size, source}, CleanName(qualifier)});
  }

  size_t entries_left_ = 0;
  std::set<std::string> seen_;  // canonical paths
  std::vector<Candidate> candidates_;
  std::error_code ignored_;
};

std::string FirstOf(const std::string& given, const std::string& otherwise) {
  return given.starts_with('/') ? given : otherwise;
}

}  // namespace

std::vector<Candidate> SearchModelFolders(const LibraryFolders& folders) {
  const platform::Environment& environment = folders.environment;
  const platform::UserFolders user = platform::FindUserFolders(environment);
  const std::string cache = FirstOf(environment.xdg_cache_home, user.home + "/.cache");
  Search search;
  search.AddTree(user.models, ModelSource::kModelsFolder);
  search.AddTree(folders.current_folder + "/models", ModelSource::kCurrentFolder);
  search.AddTree(user.home + "/.lmstudio/models", ModelSource::kLmStudio);
  search.AddTree(cache + "/lm-studio/models", ModelSource::kLmStudio);
  const std::string hf_home = FirstOf(environment.hf_home, cache + "/huggingface");
  search.AddTree(FirstOf(environment.hf_hub_cache, hf_home + "/hub"), ModelSource::kHuggingFace);
  search.AddTree(FirstOf(environment.llama_cache, cache + "/llama.cpp"), ModelSource::kLlamaCpp);
  search.AddOllama(FirstOf(environment.ollama_models, user.home + "/.ollama/models"));
  search.AddOllama(folders.root + "/usr/share/ollama/.ollama/models");
  search.AddOllama(folders.root + "/var/snap/ollama/common/models");
  return search.Take();
}

}  // namespace sluice::api
