// The measures of `sluice eval`, on one conversation: perplexity on a text, divergence from a base run,
// accuracy on a question set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "options.h"
#include "sluice/conversation.h"
#include "sluice/eval.h"
#include "sluice/model.h"

namespace sluice::app {

struct TextFlags {
  std::string file;
  int64_t chunks = 0;  // windows at most; 0: all
};

// A text as this conversation reads it (eval::CutWindows): windows of the context's length, each on its own
// behind a BOS where the model wants one. Where the context overflows, the text is one window.
Result<eval::BaseRun> PlanText(const TextFlags& flags, const Model& model, const Conversation& conversation);

// The text of a base run, to be read by another model. Errors: those of eval::CheckComparable.
Result<eval::BaseRun> PlanTextOf(const eval::BaseRun& base, const Model& model);

// A conversation to measure a text in: with a context of 512 tokens, or the model's own if that is less, when
// none was asked for.
Result<std::unique_ptr<Conversation>> TextConversation(const OpenedModel& opened,
                                                       ConversationOptions options);

// Reads the windows and hands over the logits at each scored position, in order. `what` is for the line that
// shows how far it is. Stops at the first error of `sink`.
Status Predict(const eval::TextWindows& windows, std::string_view what, Conversation& conversation,
               const std::function<Status(int64_t index, std::span<const float> logits)>& sink);

Result<eval::Perplexity> MeasurePerplexity(const eval::BaseRun& text, Conversation& conversation);

// The same, and keeps what was predicted in a file: there whole or not at all, and none of `inputs`.
Result<eval::Perplexity> SaveBase(const eval::BaseRun& text, const std::string& path,
                                  std::span<const std::string> inputs, Conversation& conversation);

// SaveBase for a comparison right after: the file has no name any more when this returns. It lies in
// TMPDIR, or /tmp.
struct TemporaryBase {
  eval::Perplexity perplexity;
  eval::BaseRunReader reader;
};
Result<TemporaryBase> SaveTemporaryBase(const eval::BaseRun& text, Conversation& conversation);

Result<eval::BaseRunReader> OpenBase(const std::string& path);

// Errors: those of eval::CheckComparable and of reading the base.
Result<eval::Divergence> Compare(const eval::BaseRun& text, eval::BaseRunReader& base,
                                 Conversation& conversation);

struct QuestionFlags {
  std::string file;
  int64_t max_tokens = 64;
  bool show_wrong = false;  // on stderr
};

// Each question on its own, answered greedily.
Result<eval::Scoreboard> AskQuestions(const QuestionFlags& flags, Conversation& conversation);

}  // namespace sluice::app
