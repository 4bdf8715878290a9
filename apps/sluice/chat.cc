// sluice chat: talk with a model in the terminal.
#include <memory>
#include <optional>

#include "chat_loop.h"
#include "command.h"
#include "options.h"
#include "output.h"
#include "sluice/library.h"

namespace sluice::app {

namespace {

struct ChatFlags {
  ModelFlags model;
  SamplingFlags sampling;
  AnswerFlags answer;
  std::string system;
  std::optional<std::string> resume;  // "": the conversation of last time
  ObserveFlags observe;
  bool quiet = false, no_save = false;
};

Result<int> Chat(const ChatFlags& flags) {
  ChatSettings settings{.system = flags.system,
                        .interactive = CanEditLines(),
                        .quiet = flags.quiet,
                        .stats = flags.observe.stats,
                        .save = !flags.no_save};
  SLUICE_TRY_ASSIGN(settings.answer, flags.answer.Answer());
  SLUICE_TRY_ASSIGN(ConversationOptions options, flags.model.Conversation(kv::Overflow::kWindow));
  const platform::UserFolders folders = platform::FindUserFolders(platform::Environment::FromProcess());
  settings.home = folders.home;
  ConversationStore store(folders.data + "/conversations");
  std::string resumed = flags.resume.value_or("");
  if (flags.resume && resumed.empty()) {
    const std::vector<std::string> names = store.List();
    if (names.empty()) return Fail(ErrorCode::kNotFound, "there is no conversation to continue in {}", store.folder());
    resumed = names.front();
  }

  SLUICE_TRY_ASSIGN(OpenedModel opened, OpenModel(flags.model, options, {.trace = flags.observe.trace}));
  SLUICE_TRY_ASSIGN(settings.answer.sampling, flags.sampling.Over(opened.model->sampling()));
  const bool said = !flags.model.overflow.empty() || flags.model.window != 0;
  if (!said && !Conversation::GoesOn(*opened.model)) options.overflow = kv::Overflow::kStop;
  SLUICE_TRY_ASSIGN(auto conversation, Conversation::Create(*opened.engine, opened.model, options));
  opened.BeginTrace(*conversation);
  MessageReader reader(settings.interactive, flags.no_save ? "" : folders.data + "/chat_history");
  ChatLoop loop(std::move(opened), std::move(conversation), std::move(store), std::move(reader), std::move(settings));
  if (flags.resume) {
    SLUICE_TRY(loop.Load(resumed));
  }
  return loop.Run();
}

}  // namespace

void AddChat(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("chat", "Talk with a model in the terminal: sluice chat MODEL");
  auto flags = std::make_shared<ChatFlags>();
  flags->model.AddTo(*command);
  command->add_option("-s,--system", flags->system, "System message");
  command->add_option("--continue", flags->resume, "Go on with the conversation of last time, or the one of this name")
      ->expected(0, 1)
      ->type_name("[NAME]");
  command->add_flag("--no-save", flags->no_save, "Don't keep the conversation and what is typed");
  flags->observe.AddTo(*command);
  command->add_flag("--quiet", flags->quiet, "No line of figures under an answer");
  flags->answer.AddTo(*command);
  flags->sampling.AddTo(*command);
  command->final_callback([flags, &action] { action = [flags] { return Chat(*flags); }; });
}

}  // namespace sluice::app
