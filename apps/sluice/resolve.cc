#include "resolve.h"

#include <filesystem>

namespace sluice::app {

Result<std::string> ResolveModel(const std::string& path_or_name) {
  std::error_code ignored;
  if (std::filesystem::exists(path_or_name, ignored)) return path_or_name;
  return Fail(ErrorCode::kNotFound, "{}: there is no such file", path_or_name);
}

}  // namespace sluice::app
