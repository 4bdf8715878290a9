#include "resolve.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "glyphs.h"
#include "suggest.h"

namespace sluice::app {

Result<std::string> ResolveModel(const std::string& path_or_name) {
  return ResolveModel(path_or_name, {.environment = platform::Environment::FromProcess()});
}

Result<std::string> ResolveModel(const std::string& path_or_name, const LibraryFolders& folders) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path_or_name, ignored);
  const bool exists = std::filesystem::exists(status);
  // A folder may have the name of a model, as "llama3" has.
  if (exists && !std::filesystem::is_directory(status)) return path_or_name;
  const std::vector<FoundModel> models = FindModels(folders);
  std::vector<std::string> ambiguous;
  if (const FoundModel* model = FindByName(models, path_or_name, &ambiguous)) return model->path;
  if (exists) return path_or_name;

  const std::string asked = Printable(path_or_name);
  if (!ambiguous.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "'{}' could be any of {} models: {}", asked, ambiguous.size(),
                fmt::join(ambiguous, ", "));
  }
  if (models.empty()) {
    return Fail(ErrorCode::kNotFound, "{}: there is no such file, and there are no models to be found by name: put GGUF "
                "files into {}", asked, platform::FindUserFolders(folders.environment).models);
  }
  std::vector<std::string> names;
  for (const FoundModel& model : models) names.push_back(model.name);
  return Fail(ErrorCode::kNotFound, "{}: there is no such file, and no model of this name.{} `sluice list` shows all {}",
              asked, DidYouMean(path_or_name, names), models.size());
}

}  // namespace sluice::app
