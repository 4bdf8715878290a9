#include "chat/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "chat/jinja/print.h"
#include "chat/jinja/value.h"

namespace sluice::chat {
namespace {

using jinja::Dict;
using jinja::Heap;
using jinja::List;
using jinja::Text;
using jinja::Value;

// A value of the request and the path that leads to it, for messages: "messages[2].content".
class Field {
 public:
  Field(std::string path, const Value* value) : path_(std::move(path)), value_(value) {}

  // A member of an object; what isn't there is like null.
  Field operator[](std::string_view key) const {
    return Field(fmt::format("{}.{}", path_, key), value_->dict()->Find(key));
  }
  Field operator[](size_t i) const {
    return Field(fmt::format("{}[{}]", path_, i), &value_->list()->items[i]);
  }

  bool is_null() const { return value_ == nullptr || value_->is_none(); }
  bool is_string() const { return value_ != nullptr && value_->is_text(); }
  bool is_array() const { return value_ != nullptr && value_->list() != nullptr; }
  bool is_object() const { return value_ != nullptr && value_->dict() != nullptr; }
  size_t size() const { return value_->list()->items.size(); }
  const Value& value() const { return *value_; }
  const std::string& path() const { return path_; }

  Error Wrong(std::string_view expected) const {
    const std::string_view found = value_ == nullptr     ? "nothing"
                                   : value_->is_none()   ? "null"
                                   : value_->list()      ? "an array"
                                   : value_->dict()      ? "an object"
                                   : value_->is_text()   ? "a string"
                                   : value_->Get<bool>() ? "a boolean"
                                                         : "a number";
    return Fail(ErrorCode::kInvalidArgument, "{}: expected {}, found {}", path_, expected, found);
  }

  Result<std::string> String() const {
    if (!is_string()) return Wrong("a string");
    return std::string(value_->text()->view());
  }
  // Empty for null and absent.
  Result<std::string> OptionalString() const {
    if (is_null()) return std::string();
    return String();
  }

 private:
  std::string path_;
  const Value* value_;
};

// Conversations are held to what a rendering may hold anyway.
constexpr jinja::Limits kLimits;

Result<Value> ParseRequest(std::string_view json, std::string_view name, Heap* heap) {
  Result<Value> value = jinja::ParseJson(json, /*trusted=*/false, heap);
  if (value) return value;
  Error error = Annotate(value.error(), std::string(name));
  error.code = ErrorCode::kInvalidArgument;  // too deep or too long is the request's fault, too
  return error;
}

Result<std::string> ToJsonText(const Value& value, Heap* heap) {
  jinja::TextBuilder builder(heap->meter());
  SLUICE_TRY(jinja::PrintJson(value, {}, &builder));
  SLUICE_TRY_ASSIGN(const Text text, builder.Finish());
  return std::string(text.view());
}

Result<std::vector<ContentPart>> ReadContent(const Field& content, bool may_be_null) {
  std::vector<ContentPart> parts;
  if (content.is_null() && may_be_null) return parts;
  if (content.is_string()) {
    ContentPart& part = parts.emplace_back();
    SLUICE_TRY_ASSIGN(part.text, content.String());
    return parts;
  }
  if (!content.is_array()) return content.Wrong("a string or an array of parts");
  for (size_t i = 0; i < content.size(); ++i) {
    const Field part = content[i];
    if (!part.is_object()) return part.Wrong("an object");
    SLUICE_TRY_ASSIGN(const std::string type, part["type"].String());
    if (type != "text") {
      return Fail(ErrorCode::kInvalidArgument, "{}: '{}' is not supported, only 'text'", part["type"].path(),
                  type);
    }
    SLUICE_TRY_ASSIGN(std::string text, part["text"].String());
    parts.push_back({ContentPart::Kind::kText, std::move(text)});
  }
  if (parts.empty()) parts.emplace_back();
  return parts;
}

Result<ToolCall> ReadToolCall(const Field& field, Heap* heap) {
  if (!field.is_object()) return field.Wrong("an object");
  const Field function = field["function"];
  if (!function.is_object()) return function.Wrong("an object");
  ToolCall call;
  SLUICE_TRY_ASSIGN(call.id, field["id"].OptionalString());
  SLUICE_TRY_ASSIGN(call.name, function["name"].String());
  const Field arguments = function["arguments"];
  if (arguments.is_null()) {
    call.arguments = "{}";
  } else if (arguments.is_object()) {
    SLUICE_TRY_ASSIGN(call.arguments, ToJsonText(arguments.value(), heap));
  } else {
    SLUICE_TRY_ASSIGN(call.arguments, arguments.String());
  }
  return call;
}

Result<Message> ReadMessage(const Field& field, Heap* heap) {
  static constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};
  if (!field.is_object()) return field.Wrong("an object");
  Message message;
  SLUICE_TRY_ASSIGN(message.role, field["role"].String());
  if (std::find(std::begin(kRoles), std::end(kRoles), message.role) == std::end(kRoles)) {
    return Fail(ErrorCode::kInvalidArgument,
                "{}: '{}' is not one of system, developer, user, assistant, tool", field["role"].path(),
                message.role.substr(0, 40));
  }
  SLUICE_TRY_ASSIGN(message.content, ReadContent(field["content"], message.role == "assistant"));
  for (const std::string_view key : {"reasoning_content", "reasoning", "thinking"}) {
    if (message.reasoning.empty() && field[key].is_string()) {
      SLUICE_TRY_ASSIGN(message.reasoning, field[key].String());
    }
  }
  SLUICE_TRY_ASSIGN(message.tool_call_id, field["tool_call_id"].OptionalString());
  SLUICE_TRY_ASSIGN(message.name, field["name"].OptionalString());
  const Field calls = field["tool_calls"];
  if (calls.is_null()) return message;
  if (!calls.is_array()) return calls.Wrong("an array");
  for (size_t i = 0; i < calls.size(); ++i) {
    SLUICE_TRY_ASSIGN(ToolCall call, ReadToolCall(calls[i], heap));
    message.tool_calls.push_back(std::move(call));
  }
  return message;
}

}  // namespace

std::string Message::Text() const {
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    if (i > 0) text += '\n';
    text += content[i].text;
  }
  return text;
}

Message TextMessage(std::string role, std::string text) {
  Message message;
  message.role = std::move(role);
  message.content.push_back({ContentPart::Kind::kText, std::move(text)});
  return message;
}

Result<std::vector<Message>> MessagesFromJson(std::string_view json) {
  Heap heap(kLimits);
  SLUICE_TRY_ASSIGN(const Value value, ParseRequest(json, "messages", &heap));
  const Field field("messages", &value);
  if (!field.is_array()) return field.Wrong("an array");
  if (field.size() == 0)
    return Fail(ErrorCode::kInvalidArgument, "messages: expected at least one, found none");
  std::vector<Message> messages;
  for (size_t i = 0; i < field.size(); ++i) {
    SLUICE_TRY_ASSIGN(Message message, ReadMessage(field[i], &heap));
    messages.push_back(std::move(message));
  }
  return messages;
}

Result<std::vector<ToolDefinition>> ToolsFromJson(std::string_view json) {
  Heap heap(kLimits);
  SLUICE_TRY_ASSIGN(const Value value, ParseRequest(json, "tools", &heap));
  const Field field("tools", &value);
  std::vector<ToolDefinition> tools;
  if (field.is_null()) return tools;
  if (!field.is_array()) return field.Wrong("an array");
  for (size_t i = 0; i < field.size(); ++i) {
    const Field entry = field[i];
    if (!entry.is_object()) return entry.Wrong("an object");
    const bool wrapped = !entry["function"].is_null();
    const Field function = wrapped ? entry["function"] : entry;
    if (!function.is_object()) return function.Wrong("an object");
    ToolDefinition tool;
    SLUICE_TRY_ASSIGN(tool.name, function["name"].String());
    if (tool.name.empty()) return Fail(ErrorCode::kInvalidArgument, "{}: is empty", function["name"].path());
    const Field parameters = function["parameters"];
    if (!parameters.is_null() && !parameters.is_object()) return parameters.Wrong("an object");
    SLUICE_TRY_ASSIGN(tool.json, ToJsonText(entry.value(), &heap));
    if (!wrapped) tool.json = fmt::format(R"({{"type": "function", "function": {}}})", tool.json);
    tools.push_back(std::move(tool));
  }
  return tools;
}

std::string MessagesToJson(std::span<const Message> messages) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Message& message : messages) {
    Json entry = {{"role", message.role}};
    if (message.content.empty()) {
      entry["content"] = nullptr;
    } else if (message.content.size() == 1) {
      entry["content"] = message.content[0].text;
    } else {
      for (const ContentPart& part : message.content) {
        entry["content"].push_back({{"type", "text"}, {"text", part.text}});
      }
    }
    if (!message.reasoning.empty()) entry["reasoning_content"] = message.reasoning;
    for (const ToolCall& call : message.tool_calls) {
      entry["tool_calls"].push_back({{"id", call.id},
                                     {"type", "function"},
                                     {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
    if (!message.tool_call_id.empty()) entry["tool_call_id"] = message.tool_call_id;
    if (!message.name.empty()) entry["name"] = message.name;
    list.push_back(std::move(entry));
  }
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice::chat
