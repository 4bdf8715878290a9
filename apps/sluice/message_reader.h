// MessageReader: what a person types next, with editing and history on a terminal, line by line from a pipe.
//
// One at a time, on the main thread: it puts the terminal into raw mode while it waits, and only then.
#pragma once

#include <string>

#include "history.h"
#include "keys.h"

namespace sluice::app {

struct Typed {
  enum class Kind {
    kMessage,
    kLeave,       // Ctrl-C or Ctrl-D on an empty line, or the end of a pipe
    kInterrupted  // by a signal
  };
  Kind kind;
  std::string text;
};

class MessageReader {
 public:
  // `interactive`: standard input and output are a terminal that can be drawn on.
  MessageReader(bool interactive, std::string history_path)
      : interactive_(interactive), history_(std::move(history_path)) {}

  // Errors: kIo; kResourceExhausted for a line of more than 64 MiB.
  Result<Typed> Read();

 private:
  Result<Typed> ReadEdited();
  Result<Typed> ReadPlain();
  // More bytes for input_; false at the end of input, or when a signal came (Interrupted()).
  Result<bool> Fill();

  bool interactive_;
  History history_;
  std::string input_;  // bytes that came with the last message but belong to the next
};

// Standard input and output are terminals, and one that understands escape sequences.
bool CanEditLines();

}  // namespace sluice::app
