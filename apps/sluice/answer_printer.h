// AnswerPrinter: shows an answer while it is generated: the answer on stdout, thoughts dimmed on stderr.
//
// A terminal gets no control characters from the model; a pipe or a file gets the answer byte for byte.
#pragma once

#include <optional>
#include <string>
#include <utility>

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

// What there is to wait for before an answer: weights being loaded, which the first pass does, then the prompt being read.
class LoadingProgress {
 public:
  // `reading`: what the prompt's line begins with; empty: only loading is shown. The model outlives this.
  LoadingProgress(const Model& model, std::string reading) : model_(model), reading_(std::move(reading)) {}
  // A session::ReadProgress.
  bool Show(int64_t done, int64_t total);
  void Clear();

 private:
  const Model& model_;
  std::string reading_;
  bool loaded_ = false;
  std::optional<ProgressLine> line_;
};

// Ctrl-C ends the answer, and `progress` shows how far it has come before it begins. `progress` outlives the answer.
void Watch(AnswerOptions& options, LoadingProgress& progress);

}  // namespace sluice::app
