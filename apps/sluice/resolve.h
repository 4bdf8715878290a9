// From what a user calls a model to a file.
#pragma once

#include <string>

#include "sluice/library.h"
#include "sluice/result.h"

namespace sluice::app {

// A path as it is; otherwise a model of this name among those that `sluice list` shows. Errors: kNotFound, with the
// names that come nearest; kInvalidArgument when several could be meant.
Result<std::string> ResolveModel(const std::string& path_or_name);
// The same among the models in these folders.
Result<std::string> ResolveModel(const std::string& path_or_name, const LibraryFolders& folders);

}  // namespace sluice::app
