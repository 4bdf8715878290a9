// The /commands of sluice chat.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "chat_loop.h"
#include "glyphs.h"
#include "output.h"
#include "sluice/usage.h"
#include "suggest.h"

namespace sluice::app {

namespace {

constexpr uint64_t kMaxAttachedBytes = 16 << 20;

std::string Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1));
}

}  // namespace

const std::vector<ChatLoop::Command>& ChatLoop::Commands() {
  static const std::vector<Command> commands = {
      {"/help", "", "this list", &ChatLoop::Help},
      {"/exit", "", "leave (also /quit, Ctrl-D, and Ctrl-C on an empty line)", &ChatLoop::Leave},
      {"/quit", "", "", &ChatLoop::Leave},
      {"/clear", "", "begin a new conversation", &ChatLoop::Clear},
      {"/retry", "", "answer the last message again", &ChatLoop::Retry},
      {"/undo", "", "take the last message and its answer back", &ChatLoop::Undo},
      {"/system", "TEXT", "set the system message; without TEXT, show it", &ChatLoop::System},
      {"/think", "on|off|N", "for models that reason: whether to, or for how many tokens", &ChatLoop::Think},
      {"/file", "PATH", "append a text file to the next message", &ChatLoop::AttachFile},
      {"/save", "NAME", "keep this conversation under a name", &ChatLoop::Save},
      {"/load", "NAME", "go on with a saved conversation", &ChatLoop::LoadCommand},
      {"/list", "", "the saved conversations, newest first", &ChatLoop::ListConversations},
      {"/stats", "", "speed, memory and context", &ChatLoop::Stats},
  };
  return commands;
}

Status ChatLoop::RunCommand(const std::string& line) {
  const size_t end = line.find_first_of(" \t\n");
  const std::string name = line.substr(0, end);
  const std::string argument = end == std::string::npos ? "" : Trimmed(line.substr(end));
  std::vector<std::string> names;
  for (const Command& command : Commands()) {
    if (command.name == name) return (this->*command.run)(argument);
    names.emplace_back(command.name);
  }
  return Fail(ErrorCode::kInvalidArgument, "there is no command {}.{} /help lists them; to send a message that begins "
              "with a slash, begin it with two", Printable(name), DidYouMean(name, names));
}

Status ChatLoop::Help(const std::string&) {
  for (const Command& command : Commands()) {
    if (command.help.empty()) continue;
    Note(fmt::format("  {:<18} {}", fmt::format("{} {}", command.name, command.argument), command.help));
  }
  Note("  A backslash at its end (or Alt-Enter) continues a message on the next line; // at its beginning sends one /.");
  return {};
}

Status ChatLoop::Leave(const std::string&) {
  leaving_ = true;
  return {};
}

Status ChatLoop::Clear(const std::string&) {
  std::vector<chat::Message> messages;
  const auto& held = conversation_->messages();
  if (!held.empty() && held[0].role == "system") messages.push_back(held[0]);
  conversation_->SetMessages(std::move(messages));
  attachments_.clear();
  name_ = kUnnamed;
  Note("a new conversation");
  return {};
}

Status ChatLoop::System(const std::string& text) {
  std::vector<chat::Message> messages = conversation_->messages();
  const bool has_one = !messages.empty() && messages[0].role == "system";
  if (text.empty()) {
    Note(has_one ? Printable(messages[0].Text()) : "there is no system message");
    return {};
  }
  if (has_one) {
    messages[0] = chat::TextMessage("system", text);
  } else {
    messages.insert(messages.begin(), chat::TextMessage("system", text));
  }
  conversation_->SetMessages(std::move(messages));
  return {};
}

Status ChatLoop::Think(const std::string& value) {
  if (value.empty()) return Fail(ErrorCode::kInvalidArgument, "/think takes on, off or a number of tokens");
  return ParseThinking("/think", value, &settings_.answer);
}

Status ChatLoop::Save(const std::string& name) {
  if (name.empty()) return Fail(ErrorCode::kInvalidArgument, "/save takes a name");
  SLUICE_TRY(store_.Save(name, {opened_.model->path(), conversation_->messages()}));
  name_ = name;
  Note(fmt::format("saved as '{}'; every answer from now on is kept there, too", name));
  return {};
}

Status ChatLoop::LoadCommand(const std::string& name) {
  if (name.empty()) return Fail(ErrorCode::kInvalidArgument, "/load takes a name; /list shows them");
  return Load(name);
}

Status ChatLoop::ListConversations(const std::string&) {
  const std::vector<std::string> names = store_.List();
  if (names.empty()) Note("no conversations are saved in " + store_.folder());
  for (const std::string& name : names) Note((name == name_ ? "* " : "  ") + name);
  return {};
}

Status ChatLoop::Retry(const std::string&) {
  const auto before = BeforeLastQuestion();
  if (!before) return Fail(ErrorCode::kInvalidArgument, "there is no message to answer again");
  const std::vector<chat::Message> messages = conversation_->messages();
  conversation_->SetMessages({messages.begin(), messages.begin() + static_cast<ptrdiff_t>(before->size()) + 1});
  const Status answered = Answer();
  if (!answered) conversation_->SetMessages(messages);
  return answered;
}

Status ChatLoop::Undo(const std::string&) {
  auto before = BeforeLastQuestion();
  if (!before) return Fail(ErrorCode::kInvalidArgument, "there is no message to take back");
  Note("taken back: " + Printable(conversation_->messages()[before->size()].Text().substr(0, 200)));
  conversation_->SetMessages(*std::move(before));
  Autosave();
  return {};
}

Status ChatLoop::Stats(const std::string&) {
  if (!last_figures_.empty()) Note("last answer   " + last_figures_);
  Note(fmt::format("context       {} of {} tokens held, {} messages", conversation_->held_tokens(),
                   conversation_->context_length(), conversation_->messages().size()));
  const platform::ProcessMemory memory = platform::ReadProcessMemory();
  Note(fmt::format("memory        {} now, {} at most; budget {}", FormatBytesOr(memory.rss_bytes),
                   FormatBytesOr(memory.peak_rss_bytes), opened_.engine->budget_origin()));
  Note(fmt::format("conversation  '{}' in {}", name_, store_.folder()));
  return {};
}

Status ChatLoop::AttachFile(const std::string& path) {
  if (path.empty()) return Fail(ErrorCode::kInvalidArgument, "/file takes a path");
  const std::string real = path.starts_with("~/") ? settings_.home + path.substr(1) : path;
  SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(real, kMaxAttachedBytes));
  if (text.find('\0') != std::string::npos) return Fail(ErrorCode::kInvalidArgument, "{}: not a text file", real);
  attachments_ += "\n\n" + text;
  Note(fmt::format("{} goes with the next message ({})", Printable(real), FormatBytes(text.size())));
  return {};
}

}  // namespace sluice::app
