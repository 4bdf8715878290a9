#include "convert/checkpoint.h"

#include <algorithm>
#include <filesystem>

#include "convert/json_file.h"
#include "convert/pytorch_file.h"
#include "convert/safetensors.h"

namespace sluice::convert {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxIndexBytes = 64u << 20;
constexpr size_t kMostNames = 5;  // in a message

using Index = std::map<std::string, std::string, std::less<>>;  // tensor → file

// How a checkpoint lies in its folder; the first that is there is taken.
struct Layout {
  std::string_view index, single, suffix;
  Result<std::vector<SourceTensor>> (*read)(const platform::File& file);
};
constexpr Layout kLayouts[] = {
    {"model.safetensors.index.json", "model.safetensors", ".safetensors", ReadSafetensors},
    {"pytorch_model.bin.index.json", "pytorch_model.bin", ".bin", ReadPytorchFile}};

// "a, b, c and 12 more"
std::string Listed(const std::vector<std::string>& names) {
  const auto shown = std::span(names).first(std::min(names.size(), kMostNames));
  const std::string rest =
      names.size() > kMostNames ? fmt::format(" and {} more", names.size() - kMostNames) : "";
  return fmt::format("{}{}", fmt::join(shown, ", "), rest);
}

Result<Index> ReadIndex(const fs::path& path, std::string_view suffix) {
  SLUICE_TRY_ASSIGN(const nlohmann::json json, ReadJsonObject(path, kMaxIndexBytes));
  SLUICE_TRY_ASSIGN(const auto map, JsonObject(json, path).Object("weight_map"));
  if (!map) return Fail(ErrorCode::kCorrupt, "{} has no weight_map", path.string());
  Index index;
  for (const auto& [name, file] : map->json().items()) {
    // A plain name: the index must not lead out of the folder.
    const bool plain = file.is_string() &&
                       fs::path(file.get<std::string>()).filename() == file.get<std::string>() &&
                       file.get<std::string>().ends_with(suffix);
    if (!plain) return map->Wrong(name, fmt::format("the name of a {} file in the same folder", suffix));
    index[name] = file.get<std::string>();
  }
  if (index.empty()) return Fail(ErrorCode::kCorrupt, "{} names no tensors", path.string());
  return index;
}

// The one file of safetensors in a folder, whatever it is called ("gptq_model-4bit-128g.safetensors"); empty
// where there are none or several.
fs::path OnlySafetensors(const fs::path& folder) {
  fs::path only;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".safetensors") continue;
    if (!only.empty()) return {};
    only = entry.path();
  }
  return only;
}

// What to say of a folder without such files.
Error NothingToRead(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth")) {
      return Fail(
          ErrorCode::kUnsupported,
          "{} has neither model.safetensors nor pytorch_model.bin; if {} is the checkpoint, with the names "
          "that the transformers library gives its tensors, rename it",
          folder.string(), name);
    }
    if (name.ends_with(".gguf")) {
      return Fail(ErrorCode::kInvalidArgument, "{} is a GGUF model already", entry.path().string());
    }
  }
  return Fail(ErrorCode::kNotFound,
              "{} has none of model.safetensors, pytorch_model.bin, and an index of several (….index.json)",
              folder.string());
}

// The files that an index names, all of them there.
Result<std::vector<std::string>> FilesOf(const Index& index, const fs::path& path) {
  std::vector<std::string> files, missing;
  for (const auto& [tensor, file] : index) files.push_back(file);
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  std::error_code ignored;
  for (const std::string& file : files) {
    if (!fs::exists(path.parent_path() / file, ignored)) missing.push_back(file);
  }
  if (missing.empty()) return files;
  return Fail(ErrorCode::kNotFound, "{} of the {} files that {} names are missing: {}", missing.size(),
              files.size(), path.string(), Listed(missing));
}

}  // namespace

Result<Checkpoint> Checkpoint::Open(const std::string& name) {
  const fs::path folder(name);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return Fail(ErrorCode::kNotFound, "{} is no folder", name);
  Checkpoint checkpoint;
  const auto* layout = std::ranges::find_if(kLayouts, [&](const Layout& candidate) {
    return fs::exists(folder / candidate.index, ignored) || fs::exists(folder / candidate.single, ignored);
  });
  if (layout == std::end(kLayouts)) {
    const fs::path only = OnlySafetensors(folder);
    if (only.empty()) return NothingToRead(folder);
    SLUICE_TRY(checkpoint.AddFile(only, ReadSafetensors));
  } else if (const fs::path path = folder / layout->index; fs::exists(path, ignored)) {
    SLUICE_TRY_ASSIGN(const Index index, ReadIndex(path, layout->suffix));
    SLUICE_TRY_ASSIGN(const std::vector<std::string> files, FilesOf(index, path));
    for (const std::string& file : files) SLUICE_TRY(checkpoint.AddFile(folder / file, layout->read));
    SLUICE_TRY(checkpoint.CheckIndex(index));
  } else {
    SLUICE_TRY(checkpoint.AddFile(folder / layout->single, layout->read));
  }
  if (checkpoint.tensors_.empty()) return Fail(ErrorCode::kCorrupt, "{} has no tensors", name);
  return checkpoint;
}

Status Checkpoint::AddFile(const std::string& path, ReadTensors read) {
  SLUICE_TRY_ASSIGN(platform::File file, platform::File::Open(path));
  SLUICE_TRY_ASSIGN(std::vector<SourceTensor> tensors, read(file));
  files_.push_back(std::move(file));
  for (SourceTensor& tensor : tensors) {
    tensor.file = static_cast<uint32_t>(files_.size() - 1);
    tensors_.push_back(std::move(tensor));
  }
  by_name_.clear();  // its views are of strings that have moved
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto [other, is_new] = by_name_.emplace(tensors_[i].name, i);
    if (!is_new) {
      return Fail(ErrorCode::kCorrupt, "tensor {} is in {} and in {}", tensors_[i].name,
                  file_of(tensors_[other->second]), path);
    }
  }
  return {};
}

Status Checkpoint::CheckIndex(const Index& index) const {
  std::vector<std::string> missing, extra;
  for (const auto& [name, file] : index) {
    const SourceTensor* tensor = Find(name);
    if (tensor == nullptr || fs::path(file_of(*tensor)).filename() != file)
      missing.push_back(fmt::format("{} ({})", name, file));
  }
  for (const SourceTensor& tensor : tensors_) {
    if (!index.contains(tensor.name))
      extra.push_back(fmt::format("{} ({})", tensor.name, fs::path(file_of(tensor)).filename().string()));
  }
  if (!missing.empty())
    return Fail(ErrorCode::kCorrupt, "{} tensors are not in the files that the index says: {}",
                missing.size(), Listed(missing));
  if (!extra.empty())
    return Fail(ErrorCode::kCorrupt, "{} tensors are in the files and not in the index: {}", extra.size(),
                Listed(extra));
  return {};
}

const SourceTensor* Checkpoint::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

std::vector<platform::FileIdentity> Checkpoint::identities() const {
  std::vector<platform::FileIdentity> identities;
  for (const platform::File& file : files_) identities.push_back(file.identity());
  return identities;
}

Status Checkpoint::ReadBytes(const SourceTensor& tensor, std::span<std::byte> bytes) const {
  SLUICE_CHECK(bytes.size() == tensor.size_bytes);
  return files_[tensor.file].PreadFull(tensor.offset, bytes);
}

Status Checkpoint::Read(const SourceTensor& tensor, uint64_t first, std::span<float> out) const {
  const uint64_t width = ElementBytes(tensor.type);
  SLUICE_CHECK(first + out.size() <= tensor.elements());
  std::vector<std::byte> bytes(out.size() * static_cast<size_t>(width));
  SLUICE_TRY(files_[tensor.file].PreadFull(tensor.offset + first * width, bytes));
  ToFloats(tensor.type, bytes, out);
  return {};
}

}  // namespace sluice::convert
