// Conversation: messages in, answers out. Holds the turns, the model's state after them, and the sampler.
//
//   SLUICE_TRY_ASSIGN(auto engine, Engine::Create({}));
//   SLUICE_TRY_ASSIGN(auto model, Model::Open(*engine, "model.gguf"));
//   SLUICE_TRY_ASSIGN(auto chat, Conversation::Create(*engine, model, {}));
//   chat->Add(chat::TextMessage("user", "What is the capital of France?"));
//   SLUICE_TRY_ASSIGN(Answer answer, chat->Reply({}, [](const chat::OutputEvent& e) { … }));
//
// What a turn has in common with what was read before is not read again. Earlier thoughts are not replayed. One thread
// at a time; an answer can be stopped from elsewhere through AnswerOptions::interrupt.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/messages.h"
#include "chat/output_parser.h"
#include "sample/options.h"
#include "session/generator.h"
#include "sluice/conversation_options.h"
#include "sluice/engine.h"
#include "sluice/model.h"
#include "sluice/work_figures.h"

namespace sluice {

struct AnswerOptions {
  sample::SamplerOptions sampling;  // start from Model::sampling()
  int64_t max_tokens = 0;           // 0: what the context has left, at most 4096
  std::vector<std::string> stop;
  bool ignore_end_of_turn = false;
  chat::Thinking thinking = chat::Thinking::kDefault;
  int64_t think_budget = -1;        // tokens of reasoning before its end is forced; −1: none
  std::vector<chat::ToolDefinition> tools;
  const std::atomic<bool>* interrupt = nullptr;
  session::ReadProgress progress;   // of reading the prompt
  std::string snapshot;             // a file to Save to behind the prompt, and again at the end (empty: none)
};

struct Answer {
  session::Generation generation;
  int64_t prompt_tokens = 0;  // of the whole prompt
  int64_t cached_tokens = 0;  // of which were still held from before
  double read_seconds = 0;    // reading the rest
  double first_token_seconds = 0;  // from the call to the first token drawn
  double decode_seconds = 0;       // from there to the end
  WorkFigures reading;             // what reading the rest took
  WorkFigures answering;           // and the tokens after the first
  uint64_t seed = 0;               // that was used
  std::string hint;                // one sentence when the answer loops or is not text, else empty

  double prefill_tokens_per_second() const;
  double decode_tokens_per_second() const;
};

class Conversation {
 public:
  // What `options` leave open is as the model's plan has it. Errors: kDoesNotFit with the numbers when the budget doesn't
  // hold it beside what is there already.
  static Result<std::unique_ptr<Conversation>> Create(const Engine& engine, std::shared_ptr<const Model> model,
                                                      const ConversationOptions& options = {});
  ~Conversation();

  const std::vector<chat::Message>& messages() const;
  void Add(chat::Message message);
  void SetMessages(std::vector<chat::Message> messages);
  int64_t context_length() const;
  int64_t held_tokens() const;  // that the model's state covers
  kv::Overflow overflow() const;

  // Whether this model can go on when its context is full (kWindow), and if not why.
  static Status GoesOn(const Model& model);

  // Keeps the model's state, and that of the sampler, in a file: there whole or not at all. Errors: kIo.
  Status Save(const std::string& path);
  // Takes them from a file, so that a prompt that begins as the one before needn't be read again, and tokens are drawn
  // as they would have been there. Messages are left alone. Errors: those of session::Session::Load; nothing is held then.
  Status Load(const std::string& path);

  // Generates the next assistant turn and adds it to the messages. Errors: kDoesNotFit when the prompt is longer than
  // the context, with both numbers; kInvalidArgument for sampling options out of range or messages that the template
  // refuses; kInterrupted while the prompt was being read.
  Result<Answer> Reply(const AnswerOptions& options, const session::EventSink& sink);

  // Continues plain text, without a template; messages are left alone.
  Result<Answer> Complete(std::string_view text, const AnswerOptions& options, const session::EventSink& sink);
  // The same for ids as they are.
  Result<Answer> CompleteIds(std::span<const TokenId> ids, const AnswerOptions& options,
                                     const session::EventSink& sink);

  session::Session& session();

 private:
  struct Impl;
  explicit Conversation(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
