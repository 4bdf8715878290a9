// LoadingProgress: what there is to wait for before an answer, in one line on stderr: weights being loaded,
// which the first pass does, then the prompt being read.
//
// One for each answer; belongs to the thread that waits for it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "output.h"
#include "sluice/conversation.h"
#include "sluice/model.h"

namespace sluice::app {

class LoadingProgress {
 public:
  using Now = ProgressLine::TimePoint (*)();

  // Of the first pass alone, which loads what it needs. The model outlives this.
  explicit LoadingProgress(const Model& model) : model_(model) {}
  // And of reading the prompt from there on; its line begins with `reading`. The conversation outlives this.
  LoadingProgress(const Model& model, Conversation& conversation, std::string reading,
                  Now now = &std::chrono::steady_clock::now)
      : model_(model),
        session_(&conversation.session()),
        passes_before_(session_->passes()),
        reading_(std::move(reading)),
        now_(now) {}
  // How far the prompt is, as session::ReadProgress says it.
  void Show(int64_t done, int64_t total);
  void Clear();

 private:
  // Output weights are not read before the prompt's last pass: that they are missing is no loading.
  bool FirstPassIsOver() const { return session_ != nullptr && session_->passes() > passes_before_; }

  const Model& model_;
  const session::Session* session_ = nullptr;
  int64_t passes_before_ = 0;
  std::string reading_;
  Now now_ = &std::chrono::steady_clock::now;
  bool loaded_ = false;
  std::optional<ProgressLine> line_;
};

}  // namespace sluice::app
