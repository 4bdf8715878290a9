// ChatLoop: one person talking with one model: reads a message or a command, answers, and begins anew.
//
// Owns the conversation and its name; one thread, the main one. Commands lie in chat_commands.cc, everything about
// messages and answers in chat_loop.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conversation_store.h"
#include "message_reader.h"
#include "options.h"

namespace sluice::app {

struct ChatSettings {
  std::string home;    // what ~ stands for in /file
  std::string system;  // of a new conversation; may be empty
  AnswerOptions answer;
  bool interactive = false;  // there is a person: greet, prompt, and let mistakes pass
  bool quiet = false;        // no line of figures under an answer
  bool stats = false;        // a table of them under an answer
  bool save = true;          // keep the conversation after every answer
};

class ChatLoop {
 public:
  ChatLoop(OpenedModel opened, std::unique_ptr<Conversation> conversation, ConversationStore store,
           MessageReader reader, ChatSettings settings);

  // Goes on with a saved conversation. Errors: those of ConversationStore::Load.
  Status Load(const std::string& name);
  // Until the person leaves; the exit code. Errors: those of writing a trace.
  Result<int> Run();

 private:
  // What a conversation without a name is kept as, so that --continue finds it.
  static constexpr std::string_view kUnnamed = "last";

  // One of the /commands. `argument`: the rest of the line. What it returns as an error is shown, and the loop goes on.
  struct Command {
    std::string_view name;
    std::string_view argument;  // as the help shows it
    std::string_view help;
    Status (ChatLoop::*run)(const std::string& argument);
  };
  static const std::vector<Command>& Commands();
  Status RunCommand(const std::string& line);
  Status Help(const std::string&);
  Status Leave(const std::string&);
  Status Clear(const std::string&);
  Status System(const std::string& text);
  Status Think(const std::string& value);
  Status Save(const std::string& name);
  Status LoadCommand(const std::string& name);
  Status ListConversations(const std::string&);
  Status Retry(const std::string&);
  Status Undo(const std::string&);
  Status Stats(const std::string&);
  Status AttachFile(const std::string& path);

  void Greet();
  Result<int> Talk();
  // Sends a message and shows the answer. When there is none, the conversation is as it was before.
  Status Send(const std::string& text);
  // Answers what was said last. An error means that nothing was added to the conversation.
  Status Answer();
  void ExplainEnd(const sluice::Answer& answer);
  void Autosave();
  Status WithSnapshot(Status (Conversation::*use)(const std::string& path));
  // Says once when a conversation outgrows its context.
  void ExplainOverflow();
  // The messages up to, and without, the last one of the user; nullopt when there is none.
  std::optional<std::vector<chat::Message>> BeforeLastQuestion() const;

  OpenedModel opened_;
  std::unique_ptr<Conversation> conversation_;
  ConversationStore store_;
  MessageReader reader_;
  ChatSettings settings_;
  std::string name_;         // what the conversation is saved as
  std::string attachments_;  // of /file, for the next message
  std::string last_figures_;
  bool overflowed_ = false;  // and it was said
  bool leaving_ = false;
};

}  // namespace sluice::app
