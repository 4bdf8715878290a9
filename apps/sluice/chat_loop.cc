#include "chat_loop.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "answer_printer.h"
#include "command.h"
#include "glyphs.h"
#include "output.h"
#include "sluice/usage.h"
#include "stats_report.h"

namespace sluice::app {

ChatLoop::ChatLoop(OpenedModel opened, std::unique_ptr<Conversation> conversation, ConversationStore store,
                   MessageReader reader, ChatSettings settings)
    : opened_(std::move(opened)),
      conversation_(std::move(conversation)),
      store_(std::move(store)),
      reader_(std::move(reader)),
      settings_(std::move(settings)),
      name_(kUnnamed) {
  if (!settings_.system.empty()) conversation_->Add(chat::TextMessage("system", settings_.system));
}

Status ChatLoop::Load(const std::string& name) {
  SLUICE_TRY_ASSIGN(SavedConversation saved, store_.Load(name));
  const size_t turns = saved.messages.size();
  conversation_->SetMessages(std::move(saved.messages));
  name_ = name;
  // Whatever is wrong with a snapshot (another model, another context): then the conversation is read again.
  (void)WithSnapshot(&Conversation::Load);
  if (settings_.interactive) Note(fmt::format("going on with '{}', {} messages", name, turns));
  if (!saved.model.empty() && saved.model != opened_.model->path())
    Note("it was held with another model: " + Printable(saved.model));
  return {};
}

void ChatLoop::Greet() {
  const std::filesystem::path path = opened_.model->path();
  Note(fmt::format("{} · context of {} tokens", Printable(path.filename().native()), conversation_->context_length()));
  Note("/help shows the commands, Ctrl-C stops an answer, Ctrl-D leaves");
}

Result<int> ChatLoop::Run() {
  if (settings_.interactive) Greet();
  Result<int> talked = Talk();
  SLUICE_TRY(opened_.FinishTrace());
  return talked;
}

Result<int> ChatLoop::Talk() {
  int exit_code = kExitOk;
  while (!leaving_) {
    if (settings_.interactive) ResetInterrupted();  // a Ctrl-C that stopped an answer has done its work
    SLUICE_TRY_ASSIGN(const Typed typed, reader_.Read());
    if (typed.kind == Typed::Kind::kInterrupted) return kExitInterrupted;
    if (typed.kind == Typed::Kind::kLeave) break;
    if (typed.text.find_first_not_of(" \t\n") == std::string::npos) continue;
    const bool command = typed.text.starts_with('/') && !typed.text.starts_with("//");
    const Status done = command ? RunCommand(typed.text) : Send(typed.text.substr(typed.text.starts_with("//") ? 1 : 0));
    if (!done) exit_code = Report(done.error());
    if (Interrupted() && !settings_.interactive) return kExitInterrupted;
  }
  // A person has seen each error and gone on; whoever reads a pipe wants to know.
  return settings_.interactive ? kExitOk : exit_code;
}

Status ChatLoop::Send(const std::string& text) {
  const std::vector<chat::Message> before = conversation_->messages();
  conversation_->Add(chat::TextMessage("user", text + attachments_));
  const Status answered = Answer();
  if (!answered) {
    conversation_->SetMessages(before);
    return answered;
  }
  attachments_.clear();
  return {};
}

Status ChatLoop::Answer() {
  AnswerOptions options = settings_.answer;
  LoadingProgress progress(*opened_.model, *conversation_, "reading");
  Watch(options, progress);
  AnswerPrinter printer;
  bool began = false;
  Result<sluice::Answer> answer = conversation_->Reply(options, [&](const chat::OutputEvent& event) {
    began = true;
    printer.Print(event);
  });
  progress.Clear();
  if (began || answer) printer.Finish();
  if (!answer) {
    Error error = std::move(answer).error();
    if (error.code == ErrorCode::kDoesNotFit) error.message += "; /clear or /undo makes room, and so does a bigger -c at start";
    if (error.code == ErrorCode::kInterrupted) Note("stopped; the message was not sent");
    return error;
  }
  last_figures_ = SpeedLine(*answer, *opened_.engine);
  ExplainEnd(*answer);
  ExplainOverflow();
  if (!settings_.quiet) Note(Dimmed(last_figures_));
  if (settings_.stats) {
    const sluice::Stats stats = GatherStats(*opened_.engine, *opened_.model, answer->reading, answer->answering);
    PrintStats(stats, BoundOnThisDevice(*opened_.engine, stats));
  }
  Autosave();
  return {};
}

void ChatLoop::ExplainEnd(const sluice::Answer& answer) {
  switch (answer.generation.finish) {
    case session::FinishReason::kContextFull:
      Note(fmt::format("the context is full: {} of {} tokens. /clear begins anew, /undo takes the last question back; "
                       "start with a bigger -c for longer conversations",
                       answer.prompt_tokens + answer.generation.tokens, conversation_->context_length()));
      break;
    case session::FinishReason::kMaxTokens:
      Note(fmt::format("stopped after {} tokens (-n allows more)", answer.generation.tokens));
      break;
    case session::FinishReason::kInterrupted: Note("stopped"); break;
    default: break;
  }
  if (!answer.hint.empty()) Note(answer.hint);
}

void ChatLoop::ExplainOverflow() {
  const bool beyond = conversation_->held_tokens() > conversation_->context_length();
  if (beyond && !overflowed_) {
    Note(fmt::format("the context of {} tokens is full: from here on, the model sees the beginning, {}and the newest tokens",
                     conversation_->context_length(),
                     conversation_->overflow() == kv::Overflow::kHeavy ? "what weighed most, " : ""));
  }
  overflowed_ = beyond;
}

Status ChatLoop::WithSnapshot(Status (Conversation::*use)(const std::string& path)) {
  SLUICE_TRY_ASSIGN(const std::string path, store_.SnapshotPath(name_));
  return ((*conversation_).*use)(path);
}

void ChatLoop::Autosave() {
  if (!settings_.save) return;
  Status saved = store_.Save(name_, {opened_.model->path(), conversation_->messages()});
  // Beside it what the model made of it, so that --continue needn't read it again.
  if (saved) saved = WithSnapshot(&Conversation::Save);
  if (saved) return;
  settings_.save = false;  // said once
  Note("the conversation is not being kept: " + saved.error().message);
}

std::optional<std::vector<chat::Message>> ChatLoop::BeforeLastQuestion() const {
  std::vector<chat::Message> messages = conversation_->messages();
  while (!messages.empty() && messages.back().role != "user") messages.pop_back();
  if (messages.empty()) return std::nullopt;
  messages.pop_back();
  return messages;
}

}  // namespace sluice::app
