#include "answer_printer.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "glyphs.h"
#include "sluice/terminal.h"

namespace sluice::app {

namespace {

void Write(std::FILE* stream, int fd, std::string_view text) {
  const std::string shown = platform::IsTerminal(fd) ? Printable(text) : std::string(text);
  std::fwrite(shown.data(), 1, shown.size(), stream);
  std::fflush(stream);
}

}  // namespace

void AnswerPrinter::EndThought() {
  if (std::exchange(in_thought_, false)) Write(stderr, STDERR_FILENO, "\n");
}

void AnswerPrinter::Print(const chat::OutputEvent& event) {
  switch (event.kind) {
    case chat::OutputEvent::Kind::kReasoning: {
      in_thought_ = true;
      const bool terminal = platform::IsTerminal(STDERR_FILENO);
      std::fputs(Dimmed(terminal ? Printable(event.text) : event.text).c_str(), stderr);
      std::fflush(stderr);
      break;
    }
    case chat::OutputEvent::Kind::kAnswer:
      EndThought();
      Write(stdout, STDOUT_FILENO, event.text);
      break;
    case chat::OutputEvent::Kind::kToolCall:
      EndThought();
      Write(stdout, STDOUT_FILENO, event.call.name + "(" + event.call.arguments + ")\n");
      break;
  }
}

void AnswerPrinter::Finish() {
  EndThought();
  Write(stdout, STDOUT_FILENO, "\n");
}

bool LoadingProgress::Show(int64_t done, int64_t total) {
  if (!line_) {
    // A session that has answered before finds everything there.
    loaded_ = model_.parts().store().loaded_share() >= 1;
    line_.emplace(loaded_ ? reading_ : "loading", loaded_ ? static_cast<double>(done) : 0);
  }
  if (!loaded_ && line_->due()) {
    const double share = model_.parts().store().loaded_share();
    line_->Show(share, 1);
    loaded_ = share >= 1;
    if (loaded_) line_.emplace(reading_, static_cast<double>(done));
  } else if (loaded_ && !reading_.empty()) {
    line_->Show(static_cast<double>(done), static_cast<double>(total));
  }
  if (done == total) Clear();
  return !Interrupted().load(std::memory_order_relaxed);
}

void LoadingProgress::Clear() {
  if (line_) line_->Clear();
}

void Watch(AnswerOptions& options, LoadingProgress& progress) {
  options.interrupt = &Interrupted();
  options.progress = [&progress](int64_t done, int64_t total) { return progress.Show(done, total); };
}

}  // namespace sluice::app
