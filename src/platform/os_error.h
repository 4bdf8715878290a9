// Errors of the operating system as Error: "what was tried: No such file or directory".
#pragma once

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.h"

namespace sluice::platform {

// `format` says what was tried and on what; the text of error_number (an errno value) is appended. kNotFound
// when something in a path is missing, kDoesNotFit when memory is, else kIo.
template <typename... Args>
[[nodiscard]] Error OsError(int error_number, fmt::format_string<Args...> format, Args&&... args) {
  const ErrorCode code = error_number == ENOENT || error_number == ENOTDIR ? ErrorCode::kNotFound
                         : error_number == ENOMEM                          ? ErrorCode::kDoesNotFit
                                                                           : ErrorCode::kIo;
  return Error{code, fmt::format(format, std::forward<Args>(args)...) + ": " +
                         std::generic_category().message(error_number)};
}

}  // namespace sluice::platform
