// The two measures of `sluice eval`, on one conversation: perplexity on a text, accuracy on a question set.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sluice/conversation.h"
#include "sluice/eval.h"
#include "sluice/model.h"

namespace sluice::app {

struct TextMeasure {
  eval::Perplexity perplexity;
  int64_t window = 0;  // tokens that were read in one go
};

// Reads `file` in windows of the context's length, each on its own behind a BOS where the model wants one;
// the tokens of each window's second half are scored, so that all have a past of at least half a window. A
// text shorter than one window is scored whole. (The first is how llama.cpp measures, so the figures
// compare.)
Result<TextMeasure> MeasurePerplexity(const Model& model, const std::string& file,
                                      Conversation& conversation);

// The context that a text is measured in when none was asked for.
int64_t DefaultWindow(const Model& model);

struct QuestionFlags {
  std::string file;
  int64_t max_tokens = 64;
  bool show_wrong = false;  // on stderr
};

// Each question on its own, answered greedily.
Result<eval::Scoreboard> AskQuestions(const QuestionFlags& flags, Conversation& conversation);

}  // namespace sluice::app
