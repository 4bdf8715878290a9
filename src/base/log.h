// Logger: where the library's few remarks go. The library never prints: whoever makes a Context hands a sink in.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

namespace sluice {

enum class LogLevel { kInfo, kWarning };

// The sink may be called from the thread that made the call that logs; never from workers.
class Logger {
 public:
  using Sink = std::function<void(LogLevel, const std::string&)>;
  Logger() = default;
  explicit Logger(Sink sink) : sink_(std::move(sink)) {}

  template <typename... Args>
  void Info(fmt::format_string<Args...> format, Args&&... args) const {
    if (sink_) sink_(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void Warn(fmt::format_string<Args...> format, Args&&... args) const {
    if (sink_) sink_(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  Sink sink_;
};

}  // namespace sluice
