// AnswerPrinter: shows an answer while it is generated: the answer on stdout, thoughts dimmed on stderr.
//
// A terminal gets no control characters from the model; a pipe or a file gets the answer byte for byte.
#pragma once

#include "loading_progress.h"
#include "output.h"
#include "sluice/conversation.h"

namespace sluice::app {

class AnswerPrinter {
 public:
  void Print(const chat::OutputEvent& event);
  // Ends the line that the answer stopped in.
  void Finish();

 private:
  void EndThought();

  bool in_thought_ = false;
};

// Ctrl-C ends the answer, and `progress` shows how far it has come before it begins. `progress` outlives the
// answer.
void Watch(AnswerOptions& options, LoadingProgress& progress);

}  // namespace sluice::app
