// Generator: samples an answer token by token and turns it into text events as it grows.
//
// Its pipeline: logits → sampler → token → characters (never half of one) → stop strings (across token borders) →
// reasoning, answer and tool calls. Control tokens are never shown; those that mark reasoning or tool calls are
// understood. Works on a session that has read a prompt; leaves it holding the answer's tokens too.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/chat_template.h"
#include "chat/output_parser.h"
#include "sample/sampler.h"
#include "session/session.h"

namespace sluice::session {

enum class FinishReason {
  kEndOfTurn,    // the model ended its answer
  kStopString,
  kMaxTokens,
  kContextFull,
  kInterrupted,
};
// As APIs spell it: "stop", "length", "interrupted".
std::string_view Name(FinishReason reason);

struct GenerateOptions {
  int64_t max_tokens = 0;          // > 0
  std::vector<std::string> stop;   // the answer ends before the first of these
  bool ignore_end_of_turn = false; // for measurements
  int64_t think_budget = -1;       // tokens of reasoning after which its end is forced; −1 = none
  bool parse_tools = false;
  bool opens_reasoning = false;    // RenderedPrompt::opens_reasoning
  bool raw = false;                // no template was used: no reasoning or tool markers are looked for
  std::function<void(TokenId id, std::string_view text)> on_token;  // each token drawn, and the text it completed
  const std::atomic<bool>* interrupt = nullptr;  // set from elsewhere to stop, within a token too
};

struct Generation {
  std::string text;       // the answer
  std::string reasoning;
  std::vector<chat::ToolCall> tool_calls;
  int64_t tokens = 0;     // sampled, the ending one included
  FinishReason finish = FinishReason::kEndOfTurn;
};

using EventSink = std::function<void(const chat::OutputEvent&)>;

// Errors: those of Session::Advance other than a full context, which is a FinishReason.
Result<Generation> Generate(Session& session, const chat::Capabilities& capabilities, sample::Sampler& sampler,
                            const GenerateOptions& options, const EventSink& sink);

}  // namespace sluice::session
