// OutputParser: splits what a model generates into reasoning, answer and tool calls, while it is being
// generated.
//
// No text is lost and none comes twice, however the chunks fall: what might be the beginning of a marker is
// held back until it is decided. Only the markers go, and whitespace next to those of a thought. Model output
// is hostile: what doesn't parse as a tool call comes out as answer, markers included.
//
// One parser per generation; one thread at a time. Chunks are UTF-8, as the stream decoder gives them, and
// must contain the text of control tokens that are markers (such as "<|channel|>" or "[TOOL_CALLS]").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_template.h"
#include "chat/messages.h"

namespace sluice::chat {

struct OutputEvent {
  enum class Kind { kReasoning, kAnswer, kToolCall };
  Kind kind = Kind::kAnswer;
  std::string text;  // kReasoning, kAnswer
  ToolCall call;     // kToolCall; the id is empty where the model gives none

  bool operator==(const OutputEvent&) const = default;
};

class OutputParser {
 public:
  // `parse_tools`: look for tool calls (the request offered tools). `in_reasoning`:
  // RenderedPrompt::opens_reasoning.
  OutputParser(const Capabilities& capabilities, bool parse_tools, bool in_reasoning);

  std::vector<OutputEvent> Feed(std::string_view chunk);
  // The generation ended: what was held back comes out. The parser is done.
  std::vector<OutputEvent> Finish();

  // Does the parser need the text of this control token, if it comes next? Others say nothing.
  bool Reads(std::string_view control_token) const;

  // Is what comes next part of a thought? (For --think BUDGET and for dimming.)
  bool in_reasoning() const { return state_ == State::kReasoning; }

 private:
  enum class State {
    kStart,  // nothing but whitespace so far: a thought or a bare tool call may begin
    kAnswer,
    kReasoning,
    kToolCall,  // behind an opening marker
    kHeader,    // gpt-oss: between two messages, up to <|message|>
  };

  // Decides about the beginning of pending_. False: that takes more text (at the end: there is none left).
  bool Step(bool at_end);
  bool StepStart(bool at_end);
  bool StepText(bool at_end);
  bool StepToolCall(bool at_end);
  bool StepHeader(bool at_end);

  // The markers that end the current state.
  std::vector<std::string_view> Terminators() const;
  void Emit(OutputEvent::Kind kind, std::string_view text);
  // The calls, or else `raw` as answer.
  void EmitCalls(std::vector<ToolCall> calls, std::string_view raw);
  bool harmony() const { return capabilities_.reasoning == ReasoningFormat::kHarmony; }

  const Capabilities capabilities_;
  const bool parse_tools_;
  State state_;
  bool skip_blanks_ = false;  // behind a marker
  std::string pending_;       // not decided yet
  size_t searched_ = 0;       // of pending_, without finding a terminator
  std::string tool_name_;     // gpt-oss: the function that the current message goes to
  std::vector<OutputEvent> events_;
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
