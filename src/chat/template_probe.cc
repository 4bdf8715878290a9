#include "chat/template_probe.h"

#include "chat/jinja/interpreter.h"
#include "chat/markers.h"

namespace sluice::chat {
namespace {

using jinja::Value;

// A probe that needs more than a few messages' worth of work has told enough.
constexpr jinja::Limits kProbeLimits = {.steps = 200'000, .live_bytes = 8 * kMiB, .output_bytes = 1 * kMiB};

// Words that no template contains by itself.
constexpr std::string_view kUserText = "sluiceuserword";
constexpr std::string_view kSystemText = "sluicesystemword";
constexpr std::string_view kToolName = "sluicetoolname";
constexpr std::string_view kArgumentKey = "sluicekeyword";
constexpr std::string_view kResultText = "sluiceresultword";
// Mistral's templates want call ids of nine letters and digits.
constexpr std::string_view kCallId = "sluice123";

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

class Probe {
 public:
  Probe(const jinja::Template& source, std::string_view bos_token, std::string_view eos_token)
      : source_(source), bos_token_(bos_token), eos_token_(eos_token) {}

  Result<ProbeResult> Run() {
    SLUICE_TRY(ProbeContent());
    ProbeSystem();
    ProbeTools();
    ProbeThinking();
    return std::move(result_);
  }

 private:
  static Message Make(std::string_view role, std::string_view text) {
    return TextMessage(std::string(role), std::string(text));
  }

  Result<std::string> Render(std::span<const Message> messages, std::span<const ToolDefinition> tools = {},
                             const std::vector<std::pair<std::string, Value>>* variables = nullptr) const {
    RenderInput input;
    input.messages = messages;
    input.tools = tools;
    input.local_time = 0;
    const ContextOptions options = {result_.shape, bos_token_, eos_token_, variables};
    SLUICE_TRY_ASSIGN(const std::vector<Segment> segments, RenderOnce(source_, input, options, kProbeLimits));
    return Flatten(segments);
  }

  // Does the rendering succeed and contain all of the parts?
  bool Shows(std::span<const Message> messages, std::span<const ToolDefinition> tools,
             std::initializer_list<std::string_view> parts) const {
    const Result<std::string> text = Render(messages, tools);
    if (!text) return false;
    for (const std::string_view part : parts) {
      if (!Contains(*text, part)) return false;
    }
    return true;
  }

  // Content as a string or as parts? A template that shows the user's words in neither can't be used.
  Status ProbeContent() {
    const Message messages[] = {Make("user", kUserText)};
    const Message with_system[] = {Make("system", kSystemText), Make("user", kUserText)};
    const Result<std::string> plain = Render(messages);
    if (!plain && plain.error().code == ErrorCode::kResourceExhausted) return plain.error();
    for (const NoTools no_tools : {NoTools::kNull, NoTools::kAbsent, NoTools::kEmptyList}) {
      result_.shape.no_tools = no_tools;
      for (const bool parts : {false, true}) {
        result_.shape.content_parts = parts;
        if (Shows(messages, {}, {kUserText}) || Shows(with_system, {}, {kUserText})) return {};
      }
    }
    if (!plain) return plain.error();
    return Fail(ErrorCode::kUnsupported, "the template leaves out what the user says");
  }

  void ProbeSystem() {
    const Message messages[] = {Make("system", kSystemText), Make("user", kUserText)};
    result_.shape.system = true;
    result_.shape.system = Shows(messages, {}, {kSystemText, kUserText});
    result_.capabilities.system = result_.shape.system;
    result_.shape.developer = Contains(source_.source, "developer");
  }

  void ProbeTools() {
    const std::string json = fmt::format(
        R"({{"type": "function", "function": {{"name": "{}", "description": "d", "parameters": {{"type": "object", )"
        R"("properties": {{"{}": {{"type": "string", "description": "p"}}}}, "required": ["{}"]}}}}}})",
        kToolName, kArgumentKey, kArgumentKey);
    const std::vector<ToolDefinition> tools = {{std::string(kToolName), json}};
    const Message user[] = {Make("user", kUserText)};
    Capabilities& capabilities = result_.capabilities;
    capabilities.tools = Shows(user, tools, {kToolName, kUserText});

    Message call = Make("assistant", "");
    call.content.clear();
    call.tool_calls.push_back(
        {std::string(kCallId), std::string(kToolName), fmt::format(R"({{"{}": "v"}})", kArgumentKey)});
    Message answer = Make("tool", kResultText);
    answer.tool_call_id = kCallId;
    answer.name = kToolName;
    const std::vector<Message> turns = {Make("user", kUserText), call, answer};
    capabilities.tool_calls = ProbeToolCall(turns, tools);
    capabilities.tool_results = Shows(turns, tools, {kResultText});
    if (capabilities.tools || capabilities.tool_calls) FindMarkers(turns, tools);
  }

  // Finds the shape in which a call comes out well. The conversation that goes on behind the call counts
  // more: some templates look at a call only then, or fail only then.
  bool ProbeToolCall(std::span<const Message> turns, std::span<const ToolDefinition> tools) {
    MessageShape& shape = result_.shape;
    for (const size_t length : {turns.size(), size_t{2}}) {
      for (const bool objects : {true, false}) {
        for (const bool null_content : {true, false}) {
          shape.argument_objects = objects;
          shape.null_content = null_content;
          const Result<std::string> text = Render(turns.first(length), tools);
          if (text && ShowsCall(*text)) return true;
        }
      }
    }
    shape.argument_objects = true;
    return false;
  }

  // Are the call's arguments JSON, and not as Python would print a dict or with their quotes escaped?
  bool ShowsCall(std::string_view text) const {
    const size_t key = text.rfind(kArgumentKey);
    if (key == text.npos || key < 2 || (result_.shape.null_content && Contains(text, "None"))) return false;
    return text[key - 1] != '\'' && text.substr(key - 2, 2) != "\\\"";
  }

  void FindMarkers(std::span<const Message> turns, std::span<const ToolDefinition> tools) {
    ToolCallMarkers& markers = result_.capabilities.tool_call_markers;
    // What a call looks like is behind the user's words; in front of them stand explanations.
    const Result<std::string> text = Render(turns, tools);
    std::optional<MarkerPair> found;
    if (text && result_.capabilities.tool_calls) {
      const size_t user = text->rfind(kUserText);
      found = FindToolMarkers(std::string_view(*text).substr(user == text->npos ? 0 : user));
    }
    if (!found) found = FindToolMarkers(source_.source);
    if (found) {
      markers.open = found->open;
      markers.close = found->close;
    }
    markers.bare_json = !found || found->open == "<|python_tag|>";
  }

  void ProbeThinking() {
    Capabilities& capabilities = result_.capabilities;
    const Message messages[] = {Make("user", kUserText)};
    // Tags may be put together while rendering.
    const Result<std::string> rendered = Render(messages);
    const std::string text = source_.source + (rendered ? *rendered : std::string());
    if (Contains(text, "<|channel|>") && Contains(text, "analysis")) {
      capabilities.reasoning = ReasoningFormat::kHarmony;
    } else if (const std::optional<MarkerPair> tags = FindThinkTags(text)) {
      capabilities.reasoning = ReasoningFormat::kTags;
      capabilities.think_open = tags->open;
      capabilities.think_close = tags->close;
    } else {
      return;
    }
    MakeVariables();
    const Result<std::string> on = Render(messages, {}, &result_.variables.on);
    const Result<std::string> off = Render(messages, {}, &result_.variables.off);
    if (on && off && *on != *off) {
      capabilities.thinking_switch = ThinkingSwitch::kVariable;
    } else if (Contains(text, "/no_think")) {
      capabilities.thinking_switch = ThinkingSwitch::kCommand;
    } else if (capabilities.reasoning == ReasoningFormat::kTags) {
      capabilities.thinking_switch = ThinkingSwitch::kPrefill;
    }
  }

  // All names that templates have for it. An effort is given only where the template asks for one, in its
  // words.
  void MakeVariables() {
    const auto text = [](std::string_view s) { return Value(jinja::Text::Literal(std::string(s))); };
    const auto quotes = [this](std::string_view word) {
      return Contains(source_.source, fmt::format("'{}'", word)) ||
             Contains(source_.source, fmt::format("\"{}\"", word));
    };
    ThinkingVariables& variables = result_.variables;
    for (const char* name : {"enable_thinking", "thinking", "reasoning"}) {
      variables.on.emplace_back(name, Value(true));
      variables.off.emplace_back(name, Value(false));
    }
    if (Contains(source_.source, "reasoning_effort")) {
      const bool no_think = quotes("no_think");
      variables.off.emplace_back("reasoning_effort", text(no_think         ? "no_think"
                                                          : quotes("none") ? "none"
                                                                           : "low"));
      if (no_think) variables.on.emplace_back("reasoning_effort", text("high"));
    }
    if (Contains(source_.source, "thinking_budget")) {
      variables.on.emplace_back("thinking_budget", Value(int64_t{-1}));
      variables.off.emplace_back("thinking_budget", Value(int64_t{0}));
    }
  }

  const jinja::Template& source_;
  std::string_view bos_token_;
  std::string_view eos_token_;
  ProbeResult result_;
};

}  // namespace

Result<ProbeResult> ProbeTemplate(const jinja::Template& source, std::string_view bos_token,
                                  std::string_view eos_token) {
  return Probe(source, bos_token, eos_token).Run();
}

Result<std::vector<Segment>> RenderOnce(const jinja::Template& source, const RenderInput& input,
                                        const ContextOptions& options, const jinja::Limits& limits) {
  jinja::Heap heap(limits);
  SLUICE_TRY_ASSIGN(const jinja::Dict* context, BuildContext(input, options, &heap));
  jinja::Interpreter interpreter(source, limits, &heap, input.local_time);
  SLUICE_TRY_ASSIGN(const jinja::Text text, interpreter.Run(*context));
  std::vector<Segment> segments;
  text.VisitRuns([&](std::string_view run, bool trusted) {
    segments.push_back({std::string(run), trusted});
  });
  return segments;
}

}  // namespace sluice::chat
