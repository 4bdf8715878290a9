// Result<T>: how Sluice says that the world was wrong.
//
// A function that can fail because of a file, a request, memory or a disk returns Result<T>; our own
// bugs are SLUICE_CHECK (check.h). The member names are those of std::expected, so that it can take this
// one's place. No exception crosses a library boundary.
//
// Values, owned by whoever holds them; no thread affinity.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace sluice {

// What kind of wrong. The command line turns these into exit codes, a server into HTTP statuses.
enum class ErrorCode {
  kInvalidArgument,   // the caller asked for something that makes no sense
  kNotFound,          // a file, tensor, key or name that is not there
  kCorrupt,           // bytes from outside that break their format
  kUnsupported,       // well-formed, but not something this program does
  kDoesNotFit,        // more bytes than the budget has
  kIo,                // the operating system refused or failed
  kInterrupted,       // stopped on request
  kResourceExhausted  // a bound (steps, depth, size) that protects against hostile input
};

// `message` names what, where (tensor, key, byte offset), what was found and what was expected.
struct Error {
  ErrorCode code;
  std::string message;
};

// Builds an Error with a fmt-formatted message: Fail(ErrorCode::kCorrupt, "tensor {}: …", name).
template <typename... Args>
[[nodiscard]] Error Fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // Only when has_value(): anything else is our own bug.
  T& value() & { return *Checked(std::get_if<0>(&state_)); }
  const T& value() const& { return *Checked(std::get_if<0>(&state_)); }
  T&& value() && { return std::move(*Checked(std::get_if<0>(&state_))); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Only when !has_value().
  const Error& error() const& { return *Checked(std::get_if<1>(&state_)); }
  Error&& error() && { return std::move(*Checked(std::get_if<1>(&state_))); }

 private:
  template <typename P>
  static P* Checked(P* alternative) {
    SLUICE_CHECK(alternative != nullptr);
    return alternative;
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  void value() const { SLUICE_CHECK(has_value()); }
  const Error& error() const& {
    SLUICE_CHECK(!has_value());
    return *error_;
  }
  Error&& error() && {
    SLUICE_CHECK(!has_value());
    return *std::move(error_);
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

// Puts `context` in front of an error's message: "blk.0.attn_q.weight: short read at …".
inline Error Annotate(Error error, const std::string& context) {
  error.message = context + ": " + error.message;
  return error;
}

}  // namespace sluice

// SLUICE_TRY(expr): returns expr's error from this function, if it has one.
// SLUICE_TRY_ASSIGN(decl, expr): … and otherwise initialises `decl` with the value.
#define SLUICE_CONCAT_INNER(a, b) a##b
#define SLUICE_CONCAT(a, b) SLUICE_CONCAT_INNER(a, b)
#define SLUICE_TRY(expr)                                                                                  \
  do {                                                                                                    \
    if (auto sluice_try_result = (expr); !sluice_try_result) return std::move(sluice_try_result).error(); \
  } while (false)
#define SLUICE_TRY_ASSIGN(decl, expr) \
  SLUICE_TRY_ASSIGN_INNER(SLUICE_CONCAT(sluice_result_, __LINE__), decl, expr)
#define SLUICE_TRY_ASSIGN_INNER(temporary, decl, expr) \
  auto temporary = (expr);                             \
  if (!temporary) return std::move(temporary).error(); \
  decl = *std::move(temporary)
