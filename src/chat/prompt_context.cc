#include "chat/prompt_context.h"

#include <algorithm>
#include <iterator>

#include "chat/jinja/print.h"

namespace sluice::chat {
namespace {

using jinja::Dict;
using jinja::Heap;
using jinja::List;
using jinja::None;
using jinja::Text;
using jinja::Value;

// Untrusted text.
Status SetText(Dict* dict, std::string_view key, std::string_view value, Heap* heap) {
  SLUICE_TRY_ASSIGN(Text text, heap->NewText(value, /*trusted=*/false));
  return heap->Set(dict, key, Value(std::move(text)));
}

Status SetTrusted(Dict* dict, std::string_view key, std::string_view value, Heap* heap) {
  return heap->Set(dict, key, Value(Text::Literal(std::string(value))));
}

// Templates paste roles into control tokens ("<|" + role + "|>"), so the known ones are trusted; others are
// not.
Status SetRole(Dict* dict, const Message& message, const MessageShape& shape, Heap* heap) {
  static constexpr std::string_view kKnown[] = {"system", "developer", "user", "assistant", "tool"};
  if (std::find(std::begin(kKnown), std::end(kKnown), message.role) == std::end(kKnown)) {
    return SetText(dict, "role", message.role, heap);
  }
  const bool rename = message.role == "developer" && !shape.developer;
  return SetTrusted(dict, "role", rename ? "system" : message.role, heap);
}

Status SetContent(Dict* dict, const Message& message, const MessageShape& shape, Heap* heap) {
  if (message.content.empty() && shape.null_content && !message.tool_calls.empty()) {
    return heap->Set(dict, "content", Value(None{}));
  }
  if (!shape.content_parts) return SetText(dict, "content", message.Text(), heap);
  SLUICE_TRY_ASSIGN(List * parts, heap->NewList());
  for (const ContentPart& part : message.content) {
    SLUICE_TRY_ASSIGN(Dict * entry, heap->NewDict());
    SLUICE_TRY(SetTrusted(entry, "type", "text", heap));
    SLUICE_TRY(SetText(entry, "text", part.text, heap));
    SLUICE_TRY(heap->Append(parts, Value(entry)));
  }
  return heap->Set(dict, "content", Value(parts));
}

Status SetToolCalls(Dict* dict, const Message& message, const MessageShape& shape, Heap* heap) {
  SLUICE_TRY_ASSIGN(List * calls, heap->NewList());
  for (const ToolCall& call : message.tool_calls) {
    SLUICE_TRY_ASSIGN(Dict * function, heap->NewDict());
    SLUICE_TRY(SetText(function, "name", call.name, heap));
    // A model may have written arguments that are no JSON; then the text is all there is.
    Result<Value> arguments = Error{ErrorCode::kCorrupt, ""};
    if (shape.argument_objects) arguments = jinja::ParseJson(call.arguments, /*trusted=*/false, heap);
    if (arguments && arguments->dict() != nullptr) {
      SLUICE_TRY(heap->Set(function, "arguments", *arguments));
    } else {
      SLUICE_TRY(SetText(function, "arguments", call.arguments, heap));
    }
    SLUICE_TRY_ASSIGN(Dict * entry, heap->NewDict());
    if (!call.id.empty()) SLUICE_TRY(SetText(entry, "id", call.id, heap));
    SLUICE_TRY(SetTrusted(entry, "type", "function", heap));
    SLUICE_TRY(heap->Set(entry, "function", Value(function)));
    SLUICE_TRY(heap->Append(calls, Value(entry)));
  }
  return heap->Set(dict, "tool_calls", Value(calls));
}

// The name of the function that the tool message at `index` answers: its own, or that of the call it refers
// to.
std::string_view ToolName(std::span<const Message> messages, size_t index) {
  const Message& message = messages[index];
  if (!message.name.empty() || message.tool_call_id.empty()) return message.name;
  for (size_t i = index; i-- > 0;) {
    for (const ToolCall& call : messages[i].tool_calls) {
      if (call.id == message.tool_call_id) return call.name;
    }
    if (messages[i].role == "user") break;
  }
  return message.name;
}

Result<List*> BuildMessages(std::span<const Message> messages, const MessageShape& shape, Heap* heap) {
  SLUICE_TRY_ASSIGN(List * list, heap->NewList());
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    SLUICE_TRY_ASSIGN(Dict * entry, heap->NewDict());
    SLUICE_TRY(SetRole(entry, message, shape, heap));
    SLUICE_TRY(SetContent(entry, message, shape, heap));
    if (!message.reasoning.empty()) {  // templates disagree about the name
      for (const std::string_view key : {"reasoning_content", "reasoning", "thinking"}) {
        SLUICE_TRY(SetText(entry, key, message.reasoning, heap));
      }
    }
    if (!message.tool_calls.empty()) SLUICE_TRY(SetToolCalls(entry, message, shape, heap));
    if (!message.tool_call_id.empty()) SLUICE_TRY(SetText(entry, "tool_call_id", message.tool_call_id, heap));
    const std::string_view name = message.role == "tool" ? ToolName(messages, i) : message.name;
    if (!name.empty()) SLUICE_TRY(SetText(entry, "name", name, heap));
    SLUICE_TRY(heap->Append(list, Value(entry)));
  }
  return list;
}

// JSON of the request as a value.
Result<Value> ReadJson(std::string_view json, std::string_view name, Heap* heap) {
  Result<Value> value = jinja::ParseJson(json, /*trusted=*/false, heap);
  if (value || value.error().code == ErrorCode::kResourceExhausted) return value;
  return Fail(ErrorCode::kInvalidArgument, "{}: {}", name, value.error().message);
}

Result<Value> BuildTools(std::span<const ToolDefinition> tools, NoTools no_tools, Heap* heap) {
  if (tools.empty() && no_tools == NoTools::kNull) return Value(None{});
  if (tools.empty() && no_tools == NoTools::kAbsent) return Value();
  SLUICE_TRY_ASSIGN(List * definitions, heap->NewList());
  for (const ToolDefinition& tool : tools) {
    SLUICE_TRY_ASSIGN(Value definition, ReadJson(tool.json, "tools", heap));
    SLUICE_TRY(heap->Append(definitions, std::move(definition)));
  }
  return Value(definitions);
}

}  // namespace

std::vector<Message> MergeSystem(std::span<const Message> messages) {
  std::vector<Message> merged;
  std::string system;
  const auto flush = [&] {
    if (!system.empty()) merged.push_back(TextMessage("user", std::exchange(system, {})));
  };
  for (const Message& message : messages) {
    if (message.role == "system" || message.role == "developer") {
      if (!system.empty()) system += "\n\n";
      system += message.Text();
      continue;
    }
    if (message.role != "user") flush();
    Message& copy = merged.emplace_back(message);
    if (system.empty()) continue;
    system += "\n\n";
    if (copy.content.empty()) copy.content.emplace_back();
    copy.content.front().text.insert(0, std::exchange(system, {}));
  }
  flush();
  return merged;
}

Result<Dict*> BuildContext(const RenderInput& input, const ContextOptions& options, Heap* heap) {
  SLUICE_TRY_ASSIGN(Dict * context, heap->NewDict());
  if (!input.extra_json.empty()) {
    SLUICE_TRY_ASSIGN(const Value extra, ReadJson(input.extra_json, "chat_template_kwargs", heap));
    if (extra.dict() == nullptr) {
      return Fail(ErrorCode::kInvalidArgument, "chat_template_kwargs: expected an object, found {}",
                  extra.TypeName());
    }
    context = extra.dict();
  }
  const std::vector<Message> merged =
      options.shape.system ? std::vector<Message>() : MergeSystem(input.messages);
  const std::span<const Message> messages = options.shape.system ? input.messages : std::span(merged);
  SLUICE_TRY_ASSIGN(List * list, BuildMessages(messages, options.shape, heap));
  SLUICE_TRY(heap->Set(context, "messages", Value(list)));

  SLUICE_TRY_ASSIGN(Value tools, BuildTools(input.tools, options.shape.no_tools, heap));
  SLUICE_TRY(heap->Set(context, "tools", std::move(tools)));
  Value documents = Value(None{});
  if (!input.documents_json.empty()) {
    SLUICE_TRY_ASSIGN(documents, ReadJson(input.documents_json, "documents", heap));
  }
  SLUICE_TRY(heap->Set(context, "documents", std::move(documents)));
  SLUICE_TRY(heap->Set(context, "add_generation_prompt", Value(input.add_generation_prompt)));
  SLUICE_TRY(SetTrusted(context, "bos_token", options.bos_token, heap));
  SLUICE_TRY(SetTrusted(context, "eos_token", options.eos_token, heap));
  if (options.variables != nullptr) {
    for (const auto& [name, value] : *options.variables) SLUICE_TRY(heap->Set(context, name, value));
  }
  return context;
}

}  // namespace sluice::chat
