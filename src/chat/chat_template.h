// ChatTemplate: turns a conversation into the prompt that a model was trained on, with the template that its
// file carries (docs/templates.md). Templates come from strangers: they run in a sandbox (jinja/), within
// bounds.
//
// The prompt comes in segments. A *trusted* segment was written by the template (or is the model's own
// bos/eos text, or the name of a known role): special tokens in it are parsed. Everything that came out of a
// message, a tool definition or a document is untrusted, wherever the template moved it, and must be
// tokenised with special tokens off. So "<|im_end|>" typed by a user stays nine characters of text.
//
// Create probes the template once: which message shapes it takes, whether it knows system messages, tools and
// thinking, which tags its model's output uses. A ChatTemplate is immutable; any thread may render with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/messages.h"

namespace sluice::chat {

struct Segment {
  std::string text;
  bool trusted = false;

  bool operator==(const Segment&) const = default;
};

// All text of the segments, in order.
std::string Flatten(std::span<const Segment> segments);

enum class Thinking { kDefault, kOn, kOff };

// How the model's thoughts stand in its output.
enum class ReasoningFormat {
  kNone,     // it doesn't reason
  kTags,     // between an opening and a closing tag
  kHarmony,  // gpt-oss: <|channel|>analysis<|message|> … <|end|>
};

// How thinking is switched off and on for this model.
enum class ThinkingSwitch {
  kNone,      // no reasoning, or no way known
  kVariable,  // the template looks at enable_thinking, thinking, reasoning or reasoning_effort
  kCommand,   // "/think" and "/no_think" in the last user message
  kPrefill,   // off: an empty, closed thought is put at the beginning of the answer
};

// How the model writes tool calls: between two markers ("<tool_call>" … "</tool_call>"; what stands between
// them may be JSON or one of several notations, see tool_calls.h), or as an answer that is nothing but JSON.
struct ToolCallMarkers {
  std::string open;        // empty: no marker known
  std::string close;       // empty: up to the end of the output
  bool bare_json = false;  // {"name": …, "parameters": …} as the whole answer
};

struct Capabilities {
  bool system = false;        // takes a system message itself; otherwise it is merged into the next user turn
  bool tools = false;         // shows tool definitions; otherwise they are left out
  bool tool_calls = false;    // shows an assistant's earlier calls
  bool tool_results = false;  // takes messages of role "tool"
  ToolCallMarkers tool_call_markers;

  ReasoningFormat reasoning = ReasoningFormat::kNone;
  ThinkingSwitch thinking_switch = ThinkingSwitch::kNone;
  std::string think_open;   // "<think>"; empty unless kTags
  std::string think_close;  // "</think>": also what a spent --think budget forces
};

// What Create needs to know about the model. Views are copied.
struct TemplateSource {
  std::string_view text;       // the file's tokenizer.chat_template; empty: none
  std::string_view bos_token;  // text of the token; empty: none
  std::string_view eos_token;
  std::string_view architecture;                    // general.architecture, for the fallback
  std::string_view model_name;                      // general.name, for the fallback
  std::function<bool(std::string_view)> has_token;  // is this text one token of the vocabulary? may be empty
};

struct RenderInput {
  std::span<const Message> messages;
  std::span<const ToolDefinition> tools;
  std::string_view documents_json;  // array for templates with retrieval; empty: none
  bool add_generation_prompt = true;
  Thinking thinking = Thinking::kDefault;
  std::optional<int64_t> local_time;  // seconds since 1970 in local time; absent: no strftime_now
  std::string_view extra_json;        // object of more variables ("chat_template_kwargs")
};

struct RenderedPrompt {
  std::vector<Segment> segments;  // neighbours differ in trust; none is empty
  bool opens_reasoning = false;   // the prompt ends inside a thought: the output starts as reasoning
};

class ChatTemplate {
 public:
  // Never fails because of the template: where it is missing, or can't be read or run, a fallback for the
  // model's family is taken and `warnings` says why.
  static ChatTemplate Create(const TemplateSource& source);

  // Only the given text, no fallback. Errors: kUnsupported (syntax, with line and column),
  // kResourceExhausted.
  static Result<ChatTemplate> CreateExactly(const TemplateSource& source);

  // Errors:
  // - kInvalidArgument: the template refused these messages (raise_exception), and the message is the
  // template's
  //   own text and nothing else; or JSON of the input that can't be read.
  // - kUnsupported: it reached a filter, test, function or attribute that there isn't.
  // - kCorrupt: it broke at run time (a number plus a string …).
  // - kResourceExhausted: it ran past a bound.
  // All but the first say line and column.
  Result<RenderedPrompt> Render(const RenderInput& input) const;

  const Capabilities& capabilities() const;
  const std::vector<std::string>& warnings() const;
  // Where the template came from: "model" or the fallback's name ("chatml", "llama3", …).
  std::string_view origin() const;
  // The template's text.
  std::string_view text() const;

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Exactly one BOS: whether the tokenizer shall put the BOS token in front of a rendered prompt. `wants_bos`
// is the vocabulary's add_bos flag. A prompt whose trusted beginning is the BOS text has one already.
bool TokenizerAddsBos(bool wants_bos, std::string_view bos_token, std::span<const Segment> prompt);

}  // namespace sluice::chat
