#include "output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "sluice/terminal.h"

namespace sluice::app {

namespace {

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

}  // namespace sluice::app
