#include "session/generator.h"

#include <deque>

#include "base/check.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"

namespace sluice::session {

namespace {

// Tokens on their way to events. Control tokens are dropped, but for those that the output parser reads.
class OutputPipeline {
 public:
  OutputPipeline(const text::Tokenizer& tokenizer, const chat::Capabilities& capabilities,
                 const GenerateOptions& options, Generation& generation, const EventSink& sink)
      : tokenizer_(tokenizer),
        capabilities_(capabilities),
        raw_(options.raw),
        decoder_(tokenizer, {.render_special = false, .strip_leading_space = !options.raw}),
        stops_(options.stop),
        parser_(options.raw ? chat::Capabilities{} : capabilities, options.parse_tools, options.opens_reasoning),
        generation_(generation),
        sink_(sink) {}

  // True when a stop string was completed.
  bool Push(TokenId id) {
    text_.clear();
    if (IsMarker(id)) {
      decoder_.Finish(&text_);
      text_ += tokenizer_.vocabulary().Text(id);
    } else {
      decoder_.Push(id, &text_);
    }
    return Emit();
  }

  void Finish() {
    text_.clear();
    decoder_.Finish(&text_);
    if (!Emit()) {
      text_.clear();
      stops_.Finish(&text_);
      Deliver(parser_.Feed(text_));
    }
    Deliver(parser_.Finish());
  }

  bool in_reasoning() const { return parser_.in_reasoning(); }
  std::string_view last_text() const { return text_; }

 private:
  bool Emit() {
    shown_.clear();
    const bool stopped = stops_.Push(text_, &shown_);
    if (!shown_.empty()) Deliver(parser_.Feed(shown_));
    return stopped;
  }

  void Deliver(const std::vector<chat::OutputEvent>& events) {
    for (const chat::OutputEvent& event : events) {
      switch (event.kind) {
        case chat::OutputEvent::Kind::kAnswer: generation_.text += event.text; break;
        case chat::OutputEvent::Kind::kReasoning: generation_.reasoning += event.text; break;
        case chat::OutputEvent::Kind::kToolCall: generation_.tool_calls.push_back(event.call); break;
      }
      if (sink_) sink_(event);
    }
  }

  // Control tokens whose text carries structure.
  bool IsMarker(TokenId id) const {
    const text::Vocabulary& vocabulary = tokenizer_.vocabulary();
    if (raw_ || !vocabulary.Contains(id) || !vocabulary.IsControl(id)) return false;
    if (capabilities_.reasoning == chat::ReasoningFormat::kHarmony) return true;
    const std::string_view token = vocabulary.Text(id);
    return token == capabilities_.think_open || token == capabilities_.think_close || token == "<tool_call>" ||
           token == "</tool_call>" || token == "[TOOL_CALLS]" || token == "[ARGS]" || token == "<|python_tag|>";
  }

  const text::Tokenizer& tokenizer_;
  const chat::Capabilities& capabilities_;
  const bool raw_;
  text::StreamDecoder decoder_;
  text::StopMatcher stops_;
  chat::OutputParser parser_;
  Generation& generation_;
  const EventSink& sink_;
  std::string text_, shown_;
};

}  // namespace

std::string_view Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfTurn:
    case FinishReason::kStopString: return "stop";
    case FinishReason::kMaxTokens:
    case FinishReason::kContextFull: return "length";
    case FinishReason::kInterrupted: return "interrupted";
  }
  return "stop";
}

Result<Generation> Generate(Session& session, const chat::Capabilities& capabilities, sample::Sampler& sampler,
                            const GenerateOptions& options, const EventSink& sink) {
  SLUICE_CHECK(options.max_tokens > 0 && !session.logits().empty());
  const text::Tokenizer& tokenizer = session.model().tokenizer();
  Generation generation;
  OutputPipeline output(tokenizer, capabilities, options, generation, sink);

  // Tokens that close a thought which has used up its budget.
  std::deque<TokenId> forced;
  int64_t reasoning_tokens = 0;
  bool closed = false;

  const auto go_on = [&options] {
    return options.interrupt == nullptr || !options.interrupt->load(std::memory_order_relaxed);
  };
  for (;;) {
    if (!go_on()) {
      generation.finish = FinishReason::kInterrupted;
      break;
    }
    TokenId id;
    if (forced.empty()) {
      const std::optional<int32_t> drawn = sampler.Sample(session.logits());
      if (!drawn) {
        generation.finish = FinishReason::kEndOfTurn;
        break;
      }
      id = *drawn;
    } else {
      id = forced.front();
      forced.pop_front();
    }
    sampler.Accept(id);
    ++generation.tokens;
    if (!options.ignore_end_of_turn && tokenizer.vocabulary().IsEndOfGeneration(id)) {
      if (options.on_token) options.on_token(id, {});
      generation.finish = FinishReason::kEndOfTurn;
      break;
    }
    const bool stopped = output.Push(id);
    if (options.on_token) options.on_token(id, output.last_text());
    if (stopped) {
      generation.finish = FinishReason::kStopString;
      break;
    }
    if (generation.tokens >= options.max_tokens) {
      generation.finish = FinishReason::kMaxTokens;
      break;
    }
    if (output.in_reasoning()) ++reasoning_tokens;
    if (output.in_reasoning() && !closed && options.think_budget >= 0 && reasoning_tokens >= options.think_budget &&
        !capabilities.think_close.empty()) {
      closed = true;
      SLUICE_TRY_ASSIGN(const std::vector<TokenId> close,
                        tokenizer.Encode("\n" + capabilities.think_close + "\n\n", {.parse_special = true}));
      forced.assign(close.begin(), close.end());
    }
    if (session.full()) {
      generation.finish = FinishReason::kContextFull;
      break;
    }
    if (Status advanced = session.Advance(id, go_on); !advanced && advanced.error().code != ErrorCode::kInterrupted)
      return std::move(advanced).error();
  }
  output.Finish();
  return generation;
}

}  // namespace sluice::session
