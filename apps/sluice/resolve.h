// From what a user calls a model to a file.
#pragma once

#include <string>

#include "sluice/result.h"

namespace sluice::app {

// A path as it is; otherwise a model of this name among those that `sluice list` shows. Errors: kNotFound, with the
// names that come nearest.
Result<std::string> ResolveModel(const std::string& path_or_name);

}  // namespace sluice::app
