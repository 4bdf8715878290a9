#include "chat/chat_template.h"

#include <fmt/format.h>

#include "base/check.h"

#include "chat/fallback_templates.h"
#include "chat/jinja/parser.h"
#include "chat/prompt_context.h"
#include "chat/template_probe.h"

namespace sluice::chat {
namespace {

constexpr jinja::Limits kLimits;

// The text of the prompt's last trusted segments, where the template's own generation prompt stands.
std::string_view TrustedEnd(std::span<const Segment> segments) {
  return !segments.empty() && segments.back().trusted ? std::string_view(segments.back().text)
                                                      : std::string_view();
}

// Does the prompt end inside a thought: an opening tag, and then nothing but whitespace?
bool EndsInThought(std::span<const Segment> segments, const Capabilities& capabilities) {
  if (capabilities.reasoning != ReasoningFormat::kTags) return false;
  const std::string_view end = TrustedEnd(segments);
  // The tag itself may end in whitespace.
  const size_t last = capabilities.think_open.find_last_not_of(" \n");
  const size_t at = end.rfind(std::string_view(capabilities.think_open).substr(0, last + 1));
  if (at == end.npos) return false;
  return end.find_first_not_of(" \n", at + last + 1) == end.npos;
}

void AppendTrusted(std::string_view text, std::vector<Segment>* segments) {
  if (segments->empty() || !segments->back().trusted) segments->push_back({"", true});
  segments->back().text += text;
}

// "/no_think" at the end of the last user message.
std::vector<Message> WithCommand(std::span<const Message> messages, std::string_view command) {
  std::vector<Message> copy(messages.begin(), messages.end());
  for (size_t i = copy.size(); i-- > 0;) {
    if (copy[i].role != "user") continue;
    if (copy[i].content.empty()) copy[i].content.emplace_back();
    copy[i].content.back().text += fmt::format(" {}", command);
    break;
  }
  return copy;
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::Template parsed;
  std::string text;
  std::string bos_token;
  std::string eos_token;
  std::string origin;
  std::vector<std::string> warnings;
  ProbeResult probe;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

const Capabilities& ChatTemplate::capabilities() const { return impl_->probe.capabilities; }
const std::vector<std::string>& ChatTemplate::warnings() const { return impl_->warnings; }
std::string_view ChatTemplate::origin() const { return impl_->origin; }
std::string_view ChatTemplate::text() const { return impl_->text; }

Result<ChatTemplate> ChatTemplate::CreateExactly(const TemplateSource& source) {
  // The text of a token is short; anything else would only count against the bounds.
  const auto token_text = [](std::string_view text) {
    return text.size() <= 256 ? text : std::string_view();
  };
  auto impl = std::make_unique<Impl>();
  impl->text = source.text;
  impl->bos_token = token_text(source.bos_token);
  impl->eos_token = token_text(source.eos_token);
  SLUICE_TRY_ASSIGN(impl->parsed, jinja::Parse(source.text, kLimits));
  SLUICE_TRY_ASSIGN(impl->probe, ProbeTemplate(impl->parsed, impl->bos_token, impl->eos_token));
  impl->origin = "model";
  for (const std::string& unknown : impl->parsed.unknown_names) {
    impl->warnings.push_back(fmt::format("chat template {}; what needs it will fail", unknown));
  }
  return ChatTemplate(std::move(impl));
}

ChatTemplate ChatTemplate::Create(const TemplateSource& source) {
  std::string warning = "the model's file has no chat template";
  const FallbackTemplate* named = FindFallback(source.text);
  if (!source.text.empty() && named == nullptr) {
    Result<ChatTemplate> exact = CreateExactly(source);
    if (exact) return *std::move(exact);
    warning = fmt::format("the model's chat template can't be used ({})", exact.error().message);
  }
  const FallbackTemplate& fallback = named != nullptr ? *named : ChooseFallback(source);
  TemplateSource replacement = source;
  replacement.text = fallback.text;
  Result<ChatTemplate> result = CreateExactly(replacement);
  SLUICE_CHECK(result.has_value());  // our own templates work
  result->impl_->origin = fallback.name;
  if (named == nullptr) {
    result->impl_->warnings.push_back(
        fmt::format("{}: the built-in template '{}' is used, answers may be worse", warning, fallback.name));
  }
  return *std::move(result);
}

Result<RenderedPrompt> ChatTemplate::Render(const RenderInput& input) const {
  const ProbeResult& probe = impl_->probe;
  const ThinkingSwitch thinking_switch = probe.capabilities.thinking_switch;
  const bool on = input.thinking == Thinking::kOn;
  const bool off = input.thinking == Thinking::kOff;

  ContextOptions options = {probe.shape, impl_->bos_token, impl_->eos_token};
  RenderInput adapted = input;
  std::vector<Message> with_command;
  if (thinking_switch == ThinkingSwitch::kVariable && (on || off)) {
    options.variables = on ? &probe.variables.on : &probe.variables.off;
  } else if (thinking_switch == ThinkingSwitch::kCommand && (on || off)) {
    with_command = WithCommand(input.messages, on ? "/think" : "/no_think");
    adapted.messages = with_command;
  }
  if (!probe.capabilities.tools) adapted.tools = {};

  RenderedPrompt prompt;
  SLUICE_TRY_ASSIGN(prompt.segments, RenderOnce(impl_->parsed, adapted, options, kLimits));
  if (!input.add_generation_prompt) return prompt;
  prompt.opens_reasoning = EndsInThought(prompt.segments, probe.capabilities);
  if (thinking_switch == ThinkingSwitch::kPrefill && off) {
    if (!prompt.opens_reasoning) AppendTrusted(probe.capabilities.think_open + "\n", &prompt.segments);
    AppendTrusted(fmt::format("\n{}\n\n", probe.capabilities.think_close), &prompt.segments);
    prompt.opens_reasoning = false;
  }
  return prompt;
}

std::string Flatten(std::span<const Segment> segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.text;
  return text;
}

bool TokenizerAddsBos(bool wants_bos, std::string_view bos_token, std::span<const Segment> prompt) {
  if (!wants_bos) return false;
  const bool has_bos = !bos_token.empty() && !prompt.empty() && prompt.front().trusted &&
                       prompt.front().text.starts_with(bos_token);
  return !has_bos;
}

}  // namespace sluice::chat
