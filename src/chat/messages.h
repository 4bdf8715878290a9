// Message: one turn of a conversation as it travels through the whole program (command line, server,
// sessions, saved chats). Tool calls, tool results and reasoning have their own places from the start, so
// that nothing has to be guessed back out of text.
//
// Plain values, owned by whoever holds them; no thread affinity. The JSON side is the one of OpenAI's chat
// API.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::chat {

// One piece of a message's content. Only text for now; the kind is here so that pictures and sound can join.
struct ContentPart {
  enum class Kind { kText };
  Kind kind = Kind::kText;
  std::string text;

  bool operator==(const ContentPart&) const = default;
};

// A call that the model made. `arguments` is JSON text, normally an object; it is kept as it was written.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;

  bool operator==(const ToolCall&) const = default;
};

struct Message {
  std::string role;                  // "system", "developer", "user", "assistant", "tool"
  std::vector<ContentPart> content;  // empty: the JSON said null, or nothing
  std::string reasoning;             // thoughts of an assistant turn, without markers
  std::vector<ToolCall> tool_calls;  // assistant turns
  std::string tool_call_id;          // tool turns: which call this answers
  std::string name;                  // who speaks; tool turns: the function's name

  // All text parts, joined by newlines.
  std::string Text() const;

  bool operator==(const Message&) const = default;
};

// A message that is nothing but text.
Message TextMessage(std::string role, std::string text);

// A function that the model may call. `json` is the complete definition {"type": "function", "function": {…}}
// as JSON text, key order kept, since that is what the model gets to read.
struct ToolDefinition {
  std::string name;
  std::string json;
};

// The value of a request's "messages": an array of objects. Content may be null, a string or an array of text
// parts; null only where it makes sense (an assistant turn). Unknown keys are ignored. Errors:
// kInvalidArgument naming the field ("messages[3].content[0].type: …"); nesting is bounded, bytes must be
// UTF-8 JSON.
Result<std::vector<Message>> MessagesFromJson(std::string_view json);

// The value of a request's "tools". A bare function object ({"name": …, "parameters": …}) is taken, too.
Result<std::vector<ToolDefinition>> ToolsFromJson(std::string_view json);

// The same form as MessagesFromJson reads; what it writes reads back equal.
std::string MessagesToJson(std::span<const Message> messages);

}  // namespace sluice::chat
