// OutputParser: splits what a model generates into reasoning, answer and tool calls, while it is being
// generated.
//
// Text is cut nowhere and doubled nowhere, however the chunks fall: what might be the beginning of a marker
// is held back until the next chunk decides. Model output is hostile: what doesn't parse as a tool call comes
// out as text.
//
// One parser per generation; one thread at a time. Chunks are UTF-8, as the stream decoder gives them, with
// the text of control tokens that are markers (such as "<|channel|>") included.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_template.h"
#include "chat/messages.h"

namespace sluice::chat {

struct OutputEvent {
  enum class Kind { kReasoning, kAnswer, kToolCall };
  Kind kind;
  std::string text;  // kReasoning, kAnswer
  ToolCall call;     // kToolCall; id is empty where the model gives none

  bool operator==(const OutputEvent&) const = default;
};

class OutputParser {
 public:
  // `parse_tools`: look for tool calls (the request offered tools). `in_reasoning`:
  // RenderedPrompt::opens_reasoning.
  OutputParser(const Capabilities& capabilities, bool parse_tools, bool in_reasoning);

  std::vector<OutputEvent> Feed(std::string_view chunk);
  // The generation ended: what was held back comes out.
  std::vector<OutputEvent> Finish();

  // Is the text generated next part of a thought? (For --think BUDGET and for dimming.)
  bool in_reasoning() const;

 private:
  enum class State { kAnswer, kReasoning, kToolCall };

  Capabilities capabilities_;
  bool parse_tools_;
  State state_;
  std::string pending_;  // not decided yet
};

// A finished generation in one go.
struct ParsedOutput {
  std::string reasoning;
  std::string answer;
  std::vector<ToolCall> tool_calls;
};
ParsedOutput ParseOutput(const Capabilities& capabilities, bool parse_tools, bool in_reasoning,
                         std::string_view text);

}  // namespace sluice::chat
