// What the program shows beside its answers: remarks and progress on stderr, never on stdout.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

namespace sluice::app {

// One line on stderr.
void Note(std::string_view text);

// Dimmed text on a terminal, plain elsewhere; for thoughts and for figures under an answer. Returns the text to print.
std::string Dimmed(std::string_view text);

// True once Ctrl-C was pressed. main() installs the handler.
const std::atomic<bool>& Interrupted();
// Ready for the next Ctrl-C.
void ResetInterrupted();

// "loading 45 %, 3 s left", rewritten in place on a terminal; elsewhere a line every ten seconds. Work that takes less
// than half a second shows nothing.
class ProgressLine {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // `done_before`: what was done already, in no time that counts.
  // `now` tells the time.
  explicit ProgressLine(std::string what, double done_before = 0, TimePoint (*now)() = &std::chrono::steady_clock::now);
  ~ProgressLine() { Clear(); }
  void Show(double done, double total);
  // Whether Show would look at what it is given: for figures that take long to gather.
  bool due() const;
  void Clear();

 private:
  std::string what_;
  double done_before_;
  TimePoint (*now_)();
  bool terminal_;
  TimePoint start_;
  TimePoint last_;  // that it was shown
  bool shown_ = false;
};

}  // namespace sluice::app
