#include "chat/messages.h"

#include <gmock/gmock.h>

namespace sluice::chat {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& json) {
  const auto messages = MessagesFromJson(json);
  if (messages) return "accepted";
  EXPECT_EQ(messages.error().code, ErrorCode::kInvalidArgument);
  return messages.error().message;
}

TEST(Messages, ContentInAllItsForms) {
  const auto messages = MessagesFromJson(R"([
    {"role": "system", "content": ""},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": null},
    {"role": "assistant", "reasoning_content": "hm"},
    {"role": "user", "content": "say BANANA\u0000 no, say APPLE", "name": "Ann", "unknown": {"x": 1}}])");
  ASSERT_TRUE(messages) << messages.error().message;
  ASSERT_EQ(messages->size(), 5u);
  EXPECT_EQ((*messages)[0], TextMessage("system", ""));
  EXPECT_EQ((*messages)[1].content.size(), 2u);
  EXPECT_EQ((*messages)[1].Text(), "a\nb");
  EXPECT_TRUE((*messages)[2].content.empty());
  EXPECT_EQ((*messages)[3].reasoning, "hm");
  EXPECT_EQ((*messages)[4].Text(), std::string("say BANANA\0 no, say APPLE", 25));
  EXPECT_EQ((*messages)[4].name, "Ann");
}

TEST(Messages, ToolCallsAndResults) {
  const auto messages = MessagesFromJson(R"([
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1.50}"}},
      {"function": {"name": "g", "arguments": {"y": ["é", null]}}},
      {"function": {"name": "h"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "42"}])");
  ASSERT_TRUE(messages) << messages.error().message;
  const std::vector<ToolCall> expected = {
      {"c1", "f", R"({"x": 1.50})"}, {"", "g", R"({"y": ["é", null]})"}, {"", "h", "{}"}};
  EXPECT_EQ((*messages)[0].tool_calls, expected);
  EXPECT_EQ((*messages)[1].tool_call_id, "c1");
}

TEST(Messages, ErrorsNameTheField) {
  EXPECT_EQ(ErrorOf("[]"), "messages: expected at least one, found none");
  EXPECT_EQ(ErrorOf("{}"), "messages: expected an array, found an object");
  EXPECT_EQ(ErrorOf("null"), "messages: expected an array, found null");
  EXPECT_THAT(ErrorOf(""), HasSubstr("messages: not JSON at byte"));
  EXPECT_THAT(ErrorOf(R"([{"role": "user", "content": "x)"), HasSubstr("messages: not JSON at byte"));
  EXPECT_THAT(ErrorOf("[{\"role\": \"user\", \"content\": \"\xff\"}]"),
              HasSubstr("messages: not JSON at byte"));
  EXPECT_EQ(ErrorOf("[1]"), "messages[0]: expected an object, found a number");
  EXPECT_EQ(ErrorOf(R"([{"content": "x"}])"), "messages[0].role: expected a string, found nothing");
  EXPECT_THAT(ErrorOf(R"([{"role": "root", "content": "x"}])"),
              HasSubstr("messages[0].role: 'root' is not one of"));
  EXPECT_EQ(ErrorOf(R"([{"role": "user", "content": "x"}, {"role": "user", "content": 5}])"),
            "messages[1].content: expected a string or an array of parts, found a number");
  EXPECT_EQ(ErrorOf(R"([{"role": "user"}])"),
            "messages[0].content: expected a string or an array of parts, found nothing");
  EXPECT_EQ(ErrorOf(R"([{"role": "user", "content": null}])"),
            "messages[0].content: expected a string or an array of parts, found null");
  EXPECT_EQ(ErrorOf(R"([{"role": "user", "content": [{"type": "image_url"}]}])"),
            "messages[0].content[0].type: 'image_url' is not supported, only 'text'");
  EXPECT_EQ(ErrorOf(R"([{"role": "user", "content": ["x"]}])"),
            "messages[0].content[0]: expected an object, found a string");
  EXPECT_EQ(ErrorOf(R"([{"role": "user", "content": [{"type": "text", "text": true}]}])"),
            "messages[0].content[0].text: expected a string, found a boolean");
  EXPECT_EQ(ErrorOf(R"([{"role": "assistant", "tool_calls": {}}])"),
            "messages[0].tool_calls: expected an array, found an object");
  EXPECT_EQ(ErrorOf(R"([{"role": "assistant", "tool_calls": [{"function": {}}]}])"),
            "messages[0].tool_calls[0].function.name: expected a string, found nothing");
  EXPECT_EQ(
      ErrorOf(R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 1}}]}])"),
      "messages[0].tool_calls[0].function.arguments: expected a string, found a number");
  EXPECT_THAT(ErrorOf(std::string(100'000, '[')), HasSubstr("nested deeper"));
}

TEST(Messages, WhatIsWrittenReadsBackEqual) {
  std::vector<Message> messages = {TextMessage("system", "be \"nice\"\n"), TextMessage("user", "ü\x01")};
  messages[1].content.push_back({ContentPart::Kind::kText, "second"});
  messages[1].name = "Ann";
  Message call;
  call.role = "assistant";
  call.reasoning = "hm";
  call.tool_calls.push_back({"id1", "f", R"({"a":  1})"});
  messages.push_back(call);
  Message result = TextMessage("tool", "");
  result.tool_call_id = "id1";
  messages.push_back(result);
  const auto again = MessagesFromJson(MessagesToJson(messages));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, messages);
}

TEST(Tools, DefinitionsKeepTheirKeyOrder) {
  const auto tools = ToolsFromJson(R"([{"type":"function","function":{"name":"f","z":1,"a":{"b":[]}}},
                                       {"name": "g", "parameters": {"type": "object", "properties": {}}}])");
  ASSERT_TRUE(tools) << tools.error().message;
  ASSERT_EQ(tools->size(), 2u);
  EXPECT_EQ((*tools)[0].json, R"({"type": "function", "function": {"name": "f", "z": 1, "a": {"b": []}}})");
  EXPECT_EQ((*tools)[1].name, "g");
  EXPECT_EQ(
      (*tools)[1].json,
      R"({"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": {}}}})");
  EXPECT_TRUE(ToolsFromJson("null")->empty());
}

TEST(Tools, ErrorsNameTheField) {
  const auto error = [](const char* json) { return ToolsFromJson(json).error().message; };
  EXPECT_EQ(error("{}"), "tools: expected an array, found an object");
  EXPECT_EQ(error("[1]"), "tools[0]: expected an object, found a number");
  EXPECT_EQ(error(R"([{"function": "f"}])"), "tools[0].function: expected an object, found a string");
  EXPECT_EQ(error(R"([{"type": "function", "function": {}}])"),
            "tools[0].function.name: expected a string, found nothing");
  EXPECT_EQ(error(R"([{"name": "f", "parameters": []}])"),
            "tools[0].parameters: expected an object, found an array");
}

}  // namespace
}  // namespace sluice::chat
