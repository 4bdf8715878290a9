#include "mistakes.h"

#include <fmt/format.h>

#include "glyphs.h"
#include "suggest.h"

namespace sluice::app {

namespace {

std::vector<std::string> Flags(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

std::vector<std::string> Subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  return names;
}

// What the parser had no place for, here and in the subcommands that were named.
std::vector<std::string> LeftOver(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  for (const CLI::App* command : app.get_subcommands()) {
    const std::vector<std::string> more = command->remaining();
    words.insert(words.end(), more.begin(), more.end());
  }
  return words;
}

}  // namespace

std::string ExplainMistake(const CLI::App& app) {
  const std::vector<std::string> words = LeftOver(app);
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (chosen.empty()) {
    if (words.empty()) return "";
    const std::string& word = words.front();
    if (word.starts_with('-')) return fmt::format("{} is no flag.{}", Printable(word), DidYouMean(word, Flags(app)));
    if (word.ends_with(".gguf")) return fmt::format("to get an answer from a model: sluice run {} \"…\"", Printable(word));
    return fmt::format("there is no command '{}'.{} `sluice --help` lists them", Printable(word),
                       DidYouMean(word, Subcommands(app)));
  }
  const CLI::App& command = *chosen.front();
  for (const std::string& word : words) {
    if (!word.starts_with('-') || word == "-" || word == "--") continue;
    const std::string flag = word.substr(0, word.find('='));
    return fmt::format("{} is no flag of `sluice {}`.{} `sluice {} --help` lists them", Printable(flag),
                       command.get_name(), DidYouMean(flag, Flags(command)), command.get_name());
  }
  return "";
}

}  // namespace sluice::app
