#include "output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "sluice/terminal.h"

namespace sluice::app {

namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string Remaining(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s left", seconds);
  if (seconds < 6000) return fmt::format("{:.0f} min left", seconds / 60);
  return fmt::format("{:.1f} h left", seconds / 3600);
}

}  // namespace

void Note(std::string_view text) { std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data()); }

std::string Dimmed(std::string_view text) {
  if (!platform::IsTerminal(STDERR_FILENO)) return std::string(text);
  return fmt::format("\033[2m{}\033[0m", text);
}

ProgressLine::ProgressLine(std::string what, double done_before, TimePoint (*now)())
    : what_(std::move(what)),
      done_before_(done_before),
      now_(now),
      terminal_(platform::IsTerminal(STDERR_FILENO)),
      start_(now()),
      last_(start_) {}

bool ProgressLine::due() const {
  const TimePoint now = now_();
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double since_last = std::chrono::duration<double>(now - last_).count();
  return elapsed >= 0.5 && since_last >= (terminal_ ? 0.1 : 10.0);
}

void ProgressLine::Show(double done, double total) {
  if (total <= 0 || done <= done_before_ || !due()) return;
  last_ = now_();
  const double elapsed = std::chrono::duration<double>(last_ - start_).count();
  const std::string line = fmt::format("{} {:.0f} %, {}", what_, 100 * done / total,
                                       Remaining(elapsed * (total - done) / (done - done_before_)));
  std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(stderr);
  shown_ = terminal_;
}

void ProgressLine::Clear() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? kBase64[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

bool DecodeBase64(std::string_view text, std::string* bytes) {
  while (!text.empty() && (text.back() == '=' || text.back() == '\n')) text.remove_suffix(1);
  uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const size_t value = kBase64.find(c);
    if (value == std::string_view::npos) return false;
    group = group << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      *bytes += static_cast<char>(group >> bits & 0xff);
    }
  }
  return bits < 6;
}

}  // namespace sluice::app
