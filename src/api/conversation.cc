#include "sluice/conversation.h"

#include <algorithm>
#include <random>

#include "base/check.h"
#include "base/units.h"
#include "sample/answer_quality.h"
#include "text/utf8.h"

namespace sluice {

namespace {

constexpr int64_t kDefaultMaxTokens = 4096;

// What the options leave open is as the plan has it.
session::SessionOptions SessionOptionsFor(const plan::Plan& plan, const ConversationOptions& options) {
  const int64_t context = options.window != 0           ? options.window + options.sinks
                          : options.context_length != 0 ? options.context_length
                                                        : plan.kv.context_length;
  session::SessionOptions session{.kv = plan.kv, .fusion = options.fusion};
  session.kv.context_length = context;
  session.kv.batch = std::min(options.batch.value_or(plan.kv.batch), context);
  session.kv.k_type = options.k_type.value_or(plan.kv.k_type);
  session.kv.v_type = options.v_type.value_or(plan.kv.v_type);
  session.kv.rotate = options.rotate;
  session.kv.sequences = 1;
  session.kv.overflow = options.overflow;
  session.kv.sinks = options.sinks;
  return session;
}

// What to try when `options` are more than the ledger has left.
std::string NextStep(const Engine& engine, const Model& model, session::SessionOptions options) {
  const memory::LedgerSnapshot ledger = engine.context().ledger->Snapshot();
  const auto bytes = [&] { return session::Session::Bytes(model.parts(), options, engine.threads()); };
  const uint64_t accounted = ledger.total_bytes() - plan::UnaccountedWithin(ledger.budget_bytes) + bytes();
  const std::string budget = FormatBytes(accounted + plan::UnaccountedBytes(accounted));
  while (options.kv.context_length > kv::kPagePositions && bytes() > ledger.available_bytes())
    options.kv.context_length /= 2;
  if (bytes() > ledger.available_bytes()) return fmt::format("it takes a budget of {}", budget);
  return fmt::format("it takes a budget of {}, or a context of {} tokens", budget, options.kv.context_length);
}

}  // namespace

double Answer::prefill_tokens_per_second() const {
  return read_seconds > 0 ? static_cast<double>(prompt_tokens - cached_tokens) / read_seconds : 0;
}

double Answer::decode_tokens_per_second() const {
  return decode_seconds > 0 ? static_cast<double>(generation.tokens - 1) / decode_seconds : 0;
}

struct Conversation::Impl {
  const Engine& engine;
  std::shared_ptr<const Model> model;
  std::unique_ptr<session::Session> session;
  std::vector<chat::Message> messages;
  std::optional<sample::Sampler> sampler = std::nullopt;  // of the last answer
  // From a snapshot: how tokens are drawn behind the first `loaded_tokens`.
  std::optional<sample::SamplerState> loaded = std::nullopt;
  int64_t loaded_tokens = 0;

  Result<Answer> Run(Conversation& self, std::span<const TokenId> ids, const chat::Capabilities& capabilities,
                     session::GenerateOptions generate, const AnswerOptions& options,
                     const session::EventSink& sink);
};

Conversation::Conversation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Conversation::~Conversation() = default;

Result<std::unique_ptr<Conversation>> Conversation::Create(const Engine& engine,
                                                           std::shared_ptr<const Model> model,
                                                           const ConversationOptions& options) {
  if (options.context_length < 0 || options.batch.value_or(1) < 1) {
    return Fail(ErrorCode::kInvalidArgument,
                "a context of {} and a batch of {} tokens; both must be positive", options.context_length,
                options.batch.value_or(1));
  }
  if (options.window < 0 || options.sinks < 0 ||
      (options.context_length != 0 && options.window > options.context_length - options.sinks)) {
    return Fail(ErrorCode::kInvalidArgument,
                "a window of {} tokens and {} sinks; together they are at most the context", options.window,
                options.sinks);
  }
  const session::SessionOptions session_options = SessionOptionsFor(model->plan(), options);
  auto session = session::Session::Create(engine.context(), model->parts(), session_options);
  if (!session) {
    Error error = std::move(session).error();
    if (error.code == ErrorCode::kDoesNotFit) {
      error.message =
          fmt::format("a context of {} tokens does not fit: {}; {}", session_options.kv.context_length,
                      error.message, NextStep(engine, *model, session_options));
    }
    return error;
  }
  return std::unique_ptr<Conversation>(
      new Conversation(std::unique_ptr<Impl>(new Impl{engine, std::move(model), *std::move(session), {}})));
}

const std::vector<chat::Message>& Conversation::messages() const { return impl_->messages; }
void Conversation::Add(chat::Message message) { impl_->messages.push_back(std::move(message)); }
void Conversation::SetMessages(std::vector<chat::Message> messages) { impl_->messages = std::move(messages); }
int64_t Conversation::context_length() const { return impl_->session->context_length(); }
int64_t Conversation::held_tokens() const { return static_cast<int64_t>(impl_->session->tokens().size()); }
kv::Overflow Conversation::overflow() const { return impl_->session->overflow(); }

Status Conversation::GoesOn(const Model& model) {
  return session::Session::CheckOverflow(
      model.parts(), {.kv = {.context_length = plan::kSmallestContext, .overflow = kv::Overflow::kWindow}});
}

Status Conversation::Save(const std::string& path) {
  if (!impl_->sampler) return impl_->session->Save(path, nullptr);
  const sample::SamplerState state = impl_->sampler->Save();
  return impl_->session->Save(path, &state);
}

Status Conversation::Load(const std::string& path) {
  SLUICE_TRY(impl_->session->Load(path, &impl_->loaded));
  impl_->loaded_tokens = held_tokens();
  return {};
}

session::Session& Conversation::session() { return *impl_->session; }

Result<Answer> Conversation::Reply(const AnswerOptions& options, const session::EventSink& sink) {
  std::vector<chat::Message> replayed = impl_->messages;
  for (chat::Message& message : replayed) message.reasoning.clear();
  const chat::ChatTemplate& chat_template = impl_->model->chat_template();
  SLUICE_TRY_ASSIGN(
      const chat::RenderedPrompt prompt,
      chat_template.Render({.messages = replayed, .tools = options.tools, .thinking = options.thinking}));
  SLUICE_TRY_ASSIGN(const std::vector<TokenId> ids, EncodePrompt(impl_->model->tokenizer(), prompt.segments));
  SLUICE_TRY_ASSIGN(Answer answer, impl_->Run(*this, ids, chat_template.capabilities(),
                                              {.parse_tools = !options.tools.empty(),
                                               .opens_reasoning = prompt.opens_reasoning},
                                              options, sink));
  chat::Message message = chat::TextMessage("assistant", answer.generation.text);
  message.reasoning = answer.generation.reasoning;
  message.tool_calls = answer.generation.tool_calls;
  impl_->messages.push_back(std::move(message));
  return answer;
}

Result<Answer> Conversation::Complete(std::string_view text, const AnswerOptions& options,
                                      const session::EventSink& sink) {
  SLUICE_TRY_ASSIGN(const std::vector<TokenId> ids, impl_->model->EncodeText(text));
  return CompleteIds(ids, options, sink);
}

Result<Answer> Conversation::CompleteIds(std::span<const TokenId> ids, const AnswerOptions& options,
                                         const session::EventSink& sink) {
  return impl_->Run(*this, ids, {}, {.raw = true}, options, sink);
}

Result<Answer> Conversation::Impl::Run(Conversation& self, std::span<const TokenId> ids,
                                       const chat::Capabilities& capabilities,
                                       session::GenerateOptions generate, const AnswerOptions& options,
                                       const session::EventSink& sink) {
  if (ids.empty()) return Fail(ErrorCode::kInvalidArgument, "the prompt is empty");
  for (const std::string& stop : options.stop) {
    // Half a character would be held back from a whole one, and text is shown in whole ones.
    if (!text::IsValidUtf8(stop))
      return Fail(ErrorCode::kInvalidArgument, "a stop string is not valid UTF-8");
  }
  const bool ends = session->overflow() == kv::Overflow::kStop;
  const int64_t room =
      ends ? session->context_length() - static_cast<int64_t>(ids.size()) : kDefaultMaxTokens;
  if (room < 1) {
    return Fail(ErrorCode::kDoesNotFit,
                "the prompt has {} tokens and the context holds {}, which leaves no room for an answer",
                ids.size(), session->context_length());
  }
  sample::SamplerOptions sampling = options.sampling;
  if (!sampling.seed) sampling.seed = std::random_device{}();
  SLUICE_TRY_ASSIGN(sampler, sample::Sampler::Create(
                                 sampling, {.vocab_size = static_cast<int32_t>(model->config().vocab_size),
                                            .context_length = session->context_length(),
                                            .append_piece = [this](int32_t token, std::string* out) {
                                              model->tokenizer().AppendPiece(token, true, out);
                                            }}));
  const Clock& clock = *engine.context().clock;
  const double start = clock.NowSeconds();
  WorkMeter meter(engine, *session);
  Answer answer;
  answer.seed = *sampling.seed;
  answer.prompt_tokens = static_cast<int64_t>(ids.size());
  SLUICE_TRY_ASSIGN(answer.cached_tokens, session->Read(ids, options.progress));
  answer.read_seconds = clock.NowSeconds() - start;
  answer.reading = meter.Lap();
  answer.reading.tokens = answer.prompt_tokens - answer.cached_tokens;
  // What a snapshot has of the drawing holds where its tokens are the beginning of this prompt.
  std::span<const TokenId> unheard = ids;
  if (loaded && !options.sampling.seed && answer.cached_tokens == loaded_tokens && sampler->Restore(*loaded))
    unheard = ids.subspan(static_cast<size_t>(loaded_tokens));
  loaded.reset();
  for (const TokenId id : unheard) sampler->Accept(id);
  if (!options.snapshot.empty()) SLUICE_TRY(self.Save(options.snapshot));

  generate.max_tokens = options.max_tokens > 0 ? options.max_tokens : std::min(room, kDefaultMaxTokens);
  generate.stop = options.stop;
  generate.ignore_end_of_turn = options.ignore_end_of_turn;
  generate.think_budget = options.think_budget;
  generate.interrupt = options.interrupt;
  sample::AnswerQuality quality;
  double first_token = 0;
  generate.on_token = [&](TokenId id, std::string_view shown) {
    if (first_token == 0) {
      first_token = clock.NowSeconds();
      static_cast<void>(meter.Lap());  // drawing it, and a snapshot
    }
    quality.Add(id, shown);
  };
  SLUICE_TRY_ASSIGN(answer.generation, session::Generate(*session, capabilities, *sampler, generate, sink));
  const double end = clock.NowSeconds();
  answer.answering = meter.Lap();
  answer.answering.tokens = answer.answering.passes;
  if (!options.snapshot.empty()) SLUICE_TRY(self.Save(options.snapshot));
  if (first_token == 0) first_token = end;
  answer.first_token_seconds = first_token - start;
  answer.decode_seconds = end - first_token;
  answer.hint = quality.hint();
  return answer;
}

}  // namespace sluice
