// What a template gets to see: the variables messages, tools, bos_token … made from a RenderInput, in the
// shape that this template wants (found by probing it once, template_probe.h).
//
// Internal to chat. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/chat_template.h"
#include "chat/jinja/value.h"

namespace sluice::chat {

// What `tools` is when there are none.
enum class NoTools {
  kNull,  // as in Python's libraries
  kAbsent,
  kEmptyList,
};

// The choices in which templates differ.
struct MessageShape {
  NoTools no_tools = NoTools::kNull;
  bool content_parts = false;    // content is [{"type": "text", "text": …}], else a string
  bool argument_objects = true;  // a tool call's arguments are an object, else JSON text
  bool null_content = false;     // content may be none next to tool calls, else it is ""
  bool system = true;      // takes system messages; else they are merged into the user message that follows
  bool developer = false;  // knows the role "developer"; else it becomes "system"
};

// Variables that switch thinking, by name.
struct ThinkingVariables {
  std::vector<std::pair<std::string, jinja::Value>> on;
  std::vector<std::pair<std::string, jinja::Value>> off;
};

struct ContextOptions {
  MessageShape shape;
  std::string_view bos_token;
  std::string_view eos_token;
  const std::vector<std::pair<std::string, jinja::Value>>* variables = nullptr;  // thinking; may be null
};

// The system messages merged into user messages: in front of the one that follows, or as one of its own where
// none does.
std::vector<Message> MergeSystem(std::span<const Message> messages);

// Errors: kInvalidArgument for JSON in the input that can't be read, kResourceExhausted.
Result<jinja::Dict*> BuildContext(const RenderInput& input, const ContextOptions& options, jinja::Heap* heap);

}  // namespace sluice::chat
