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

void Watch(AnswerOptions& options, LoadingProgress& progress) {
  options.interrupt = &Interrupted();
  options.progress = [&progress](int64_t done, int64_t total) {
    progress.Show(done, total);
    return !Interrupted().load(std::memory_order_relaxed);
  };
}

}  // namespace sluice::app
