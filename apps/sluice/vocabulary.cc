// sluice tokenize and sluice template: what a model gets to read.
#include <charconv>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options.h"
#include "output.h"
#include "resolve.h"
#include "sluice/model.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

struct TokenizeFlags {
  std::string model, text, file;
  bool special = false, add_special = false, ids = false, json = false;
  std::vector<std::string> overrides;
};

Result<std::vector<TokenId>> ParseIds(std::string_view text) {
  std::vector<TokenId> ids;
  while (!text.empty()) {
    if (text.front() == ',' || text.front() == ' ' || text.front() == '\n' || text.front() == '[' || text.front() == ']') {
      text.remove_prefix(1);
      continue;
    }
    TokenId id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error != std::errc()) {
      return Fail(ErrorCode::kInvalidArgument, "'{}' is not a list of token ids", text.substr(0, 20));
    }
    ids.push_back(id);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return ids;
}

Result<int> Tokenize(const TokenizeFlags& flags) {
  SLUICE_TRY_ASSIGN(const std::string path, ResolveModel(flags.model));
  SLUICE_TRY_ASSIGN(const Vocabulary vocabulary, OpenVocabulary(path, flags.overrides));
  const text::Tokenizer& tokenizer = vocabulary.tokenizer;
  for (const std::string& warning : tokenizer.warnings()) Note(warning);
  std::string text = flags.text;
  if (!flags.file.empty()) {
    SLUICE_TRY_ASSIGN(text, ReadWholeFile(flags.file));
  }
  if (flags.ids) {
    SLUICE_TRY_ASSIGN(const std::vector<TokenId> ids, ParseIds(text));
    std::cout << tokenizer.Decode(ids, {.render_special = flags.special}) << "\n";
    return kExitOk;
  }
  SLUICE_TRY_ASSIGN(const std::vector<TokenId> ids,
                    tokenizer.Encode(text, {.add_special = flags.add_special, .parse_special = flags.special}));
  nlohmann::ordered_json json{{"ids", ids}, {"pieces", nlohmann::ordered_json::array()}};
  for (const TokenId id : ids) {
    std::string piece;
    tokenizer.AppendPiece(id, true, &piece);
    json["pieces"].push_back(piece);
  }
  const auto dump = [](const nlohmann::ordered_json& value) {
    return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  };
  if (flags.json) {
    std::cout << dump(json) << "\n";
  } else {
    for (size_t i = 0; i < ids.size(); ++i) std::printf("%7d  %s\n", ids[i], dump(json["pieces"][i]).c_str());
    Note(fmt::format("{} tokens", ids.size()));
  }
  return kExitOk;
}

struct TemplateFlags {
  std::string model, messages, tools, think;
  bool no_generation_prompt = false;
};

// A template file as it is, or the one in a model file.
Result<chat::ChatTemplate> OpenTemplate(const std::string& name) {
  if (name.ends_with(".jinja")) {
    SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(name));
    return chat::ChatTemplate::CreateExactly({.text = text});
  }
  SLUICE_TRY_ASSIGN(const std::string path, ResolveModel(name));
  SLUICE_TRY_ASSIGN(Vocabulary vocabulary, OpenVocabulary(path));
  return std::move(vocabulary.chat_template);
}

Result<int> Template(const TemplateFlags& flags) {
  SLUICE_TRY_ASSIGN(const chat::ChatTemplate chat_template, OpenTemplate(flags.model));
  for (const std::string& warning : chat_template.warnings()) Note(warning);
  if (flags.messages.empty()) {
    std::cout << chat_template.text() << "\n";
    return kExitOk;
  }
  SLUICE_TRY_ASSIGN(const std::string messages_json, ReadWholeFile(flags.messages));
  SLUICE_TRY_ASSIGN(const auto messages, chat::MessagesFromJson(messages_json));
  std::vector<chat::ToolDefinition> tools;
  if (!flags.tools.empty()) {
    SLUICE_TRY_ASSIGN(const std::string tools_json, ReadWholeFile(flags.tools));
    SLUICE_TRY_ASSIGN(tools, chat::ToolsFromJson(tools_json));
  }
  chat::Thinking thinking = chat::Thinking::kDefault;
  if (flags.think == "on") thinking = chat::Thinking::kOn;
  if (flags.think == "off") thinking = chat::Thinking::kOff;
  SLUICE_TRY_ASSIGN(const auto prompt, chat_template.Render({.messages = messages,
                                                             .tools = tools,
                                                             .add_generation_prompt = !flags.no_generation_prompt,
                                                             .thinking = thinking}));
  std::cout << chat::Flatten(prompt.segments);
  return kExitOk;
}

}  // namespace

void AddTokenize(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("tokenize", "Token ids and pieces of a text, or back");
  auto flags = std::make_shared<TokenizeFlags>();
  command->add_option("-m,--model,model", flags->model, "A GGUF file, or the name of a model")->required();
  command->add_option("-p,--prompt,text", flags->text, "The text");
  command->add_option("-f,--file", flags->file, "Take the text from a file");
  command->add_flag("--special", flags->special, "Parse control tokens in the text (with --ids: print them)");
  command->add_flag("--add-special", flags->add_special, "Add BOS and EOS where the model wants them");
  command->add_flag("--ids", flags->ids, "The text is a list of ids: turn it back into text");
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  command->add_option("--override-kv", flags->overrides, "Change a metadata key: KEY=TYPE:VALUE");
  command->final_callback([flags, &action] { action = [flags] { return Tokenize(*flags); }; });
}

void AddTemplate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("template", "The prompt that a conversation renders to");
  auto flags = std::make_shared<TemplateFlags>();
  command->add_option("-m,--model,model", flags->model, "A GGUF file, the name of a model, or a .jinja file")->required();
  command->add_option("--messages", flags->messages, "JSON file with a list of messages (default: print the template)");
  command->add_option("--tools", flags->tools, "JSON file with a list of tool definitions");
  command->add_option("--think", flags->think, "on or off")->check(CLI::IsMember({"on", "off"}));
  command->add_flag("--no-generation-prompt", flags->no_generation_prompt, "Don't open the assistant's turn");
  command->final_callback([flags, &action] { action = [flags] { return Template(*flags); }; });
}

}  // namespace sluice::app
