#include "message_reader.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "line_editor.h"
#include "output.h"
#include "sluice/terminal.h"

namespace sluice::app {

namespace {

constexpr size_t kMaxLineBytes = 64 << 20;

void Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

bool CanEditLines() {
  const char* terminal = std::getenv("TERM");
  return platform::IsTerminal(STDIN_FILENO) && platform::IsTerminal(STDOUT_FILENO) && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

Result<bool> MessageReader::Fill() { return platform::ReadAvailable(STDIN_FILENO, Interrupted(), &input_); }

Result<Typed> MessageReader::Read() { return interactive_ ? ReadEdited() : ReadPlain(); }

Result<Typed> MessageReader::ReadEdited() {
  SLUICE_TRY_ASSIGN(const auto raw_mode, platform::RawMode::Enter(STDIN_FILENO));
  LineEditor editor("> ", history_.entries());
  KeyDecoder keys;
  Print("\033[?2004h");  // bracketed paste
  LineEditor::Outcome outcome = LineEditor::Outcome::kEditing;
  Result<bool> more = true;
  while (outcome == LineEditor::Outcome::kEditing && more && *more) {
    size_t used = 0;
    while (used < input_.size() && outcome == LineEditor::Outcome::kEditing) {
      if (const auto key = keys.Push(input_[used++])) outcome = editor.Press(*key);
    }
    input_.erase(0, used);
    Print(editor.Draw(platform::TerminalWidth(STDOUT_FILENO)));
    if (outcome == LineEditor::Outcome::kEditing) more = Fill();
  }
  Print(editor.Leave() + "\033[?2004l");
  if (!more) return more.error();
  if (Interrupted()) return Typed{Typed::Kind::kInterrupted, {}};
  if (outcome != LineEditor::Outcome::kDone) return Typed{Typed::Kind::kLeave, {}};
  // Not being able to keep the history is no reason to disturb the conversation.
  (void)history_.Add(editor.text());
  return Typed{Typed::Kind::kMessage, editor.text()};
}

Result<Typed> MessageReader::ReadPlain() {
  std::string message;
  for (;;) {
    size_t end;
    bool last = false;
    while ((end = input_.find('\n')) == std::string::npos && !last) {
      if (input_.size() > kMaxLineBytes) {
        return Fail(ErrorCode::kResourceExhausted, "standard input: a line of more than {}", FormatBytes(kMaxLineBytes));
      }
      SLUICE_TRY_ASSIGN(const bool more, Fill());
      last = !more;
    }
    if (Interrupted()) return Typed{Typed::Kind::kInterrupted, {}};
    if (last && input_.empty() && message.empty()) return Typed{Typed::Kind::kLeave, {}};
    std::string line = input_.substr(0, end);
    input_.erase(0, last ? input_.size() : end + 1);
    if (line.ends_with('\r')) line.pop_back();
    const bool continued = line.ends_with('\\') && !last;
    if (continued) line.back() = '\n';
    message += line;
    if (!continued) return Typed{Typed::Kind::kMessage, std::move(message)};
  }
}

}  // namespace sluice::app
