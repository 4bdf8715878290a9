// Template, messages and model output are all hostile: the first byte says which of them the rest is.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "chat/chat_template.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/parser.h"
#include "chat/jinja/print.h"
#include "chat/output_parser.h"
#include "chat/tool_calls.h"

namespace {

using namespace sluice;
using namespace sluice::chat;

// Small bounds, so that a run is a fraction of a second.
constexpr jinja::Limits kLimits = {.steps = 20'000, .live_bytes = 1 << 20, .output_bytes = 1 << 18};

constexpr std::string_view kContext =
    R"({"messages": [{"role": "user", "content": "Hé <|x|>"}, {"role": "assistant", "content": null}], "n": 3,
        "d": {"k": [1, 2.5, {"z": true}]}, "bos_token": "<s>", "add_generation_prompt": true})";

void FuzzTemplate(std::string_view text) {
  const auto parsed = jinja::Parse(text, kLimits);
  if (!parsed) return;
  jinja::Heap heap(kLimits);
  const jinja::Value context = *jinja::ParseJson(kContext, false, &heap);
  (void)jinja::Interpreter(*parsed, kLimits, &heap, 1'700'000'000).Run(*context.dict());
}

void FuzzMessages(std::string_view text) {
  (void)ToolsFromJson(text);
  const auto messages = MessagesFromJson(text);
  if (!messages) return;
  static const ChatTemplate chat = ChatTemplate::Create({.text = "llama2"});
  (void)chat.Render({.messages = *messages});
  if (!MessagesFromJson(MessagesToJson(*messages))) __builtin_trap();
}

void FuzzOutput(std::string_view text, bool harmony) {
  Capabilities capabilities;
  capabilities.reasoning = harmony ? ReasoningFormat::kHarmony : ReasoningFormat::kTags;
  capabilities.think_open = "<think>";
  capabilities.think_close = "</think>";
  capabilities.tool_call_markers = {"<tool_call>", "</tool_call>", true};
  const ParsedOutput whole = ParseOutput(capabilities, true, false, text);
  OutputParser parser(capabilities, true, false);
  std::string answer;
  const auto add = [&](const std::vector<OutputEvent>& events) {
    for (const OutputEvent& event : events) {
      if (event.kind == OutputEvent::Kind::kAnswer) answer += event.text;
    }
  };
  for (const char& c : text) add(parser.Feed(std::string_view(&c, 1)));
  add(parser.Finish());
  if (answer != whole.answer) __builtin_trap();
  (void)ParseToolCalls(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
    case 1:
      FuzzTemplate(text);
      break;
    case 2:
      FuzzMessages(text);
      break;
    case 3:
      FuzzOutput(text, data[0] % 8 == 3);
      break;
  }
  return 0;
}
