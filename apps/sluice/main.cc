// sluice: the command-line program. Reads the command line, runs one subcommand, and turns errors into exit codes.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "command.h"
#include "glyphs.h"
#include "mistakes.h"
#include "output.h"
#include "sluice/terminal.h"

namespace sluice::app {

namespace {

// Made by main(), looked at by commands through Interrupted().
platform::InterruptFlag* interrupt_flag = nullptr;

constexpr char kWelcome[] =
    R"(Sluice runs language models that are bigger than your memory, inside a byte budget.

  sluice list                                      the models on this device
  sluice run MODEL "What is the capital of Peru?"  one answer
  sluice chat MODEL                                talk in the terminal

MODEL is a GGUF file or a name that `sluice list` shows. `sluice --help` lists all commands.
)";

int ExitCodeFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return kExitUsage;
    case ErrorCode::kDoesNotFit: return kExitDoesNotFit;
    case ErrorCode::kInterrupted: return kExitInterrupted;
    default: return kExitFailed;
  }
}

int Main(int argc, char** argv) {
  CLI::App app{"Sluice runs language models that are bigger than your memory, inside a byte budget.", "sluice"};
  app.set_version_flag("--version", std::string("sluice ") + SLUICE_VERSION);
  app.require_subcommand(1);
  Action action;
  AddRun(app, action);
  AddChat(app, action);
  AddList(app, action);
  AddInspect(app, action);
  AddTokenize(app, action);
  AddTemplate(app, action);
  AddLogits(app, action);
  AddEval(app, action);
  AddPlan(app, action);
  AddBench(app, action);
  AddPlot(app, action);
  AddSynth(app, action);
  AddConvert(app, action);
  AddQuantize(app, action);
  AddImatrix(app, action);
  AddPack(app, action);
  AddSplit(app, action);
  AddMerge(app, action);
  AddVerify(app, action);
  if (argc <= 1) {
    std::printf("%s", kWelcome);
    return kExitOk;
  }
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    for (std::string& word : words) {
      if (word == "-ctk") word = "--kv-k";  // as llama.cpp spells them; -ctk would be read as -c, -t and -k
      if (word == "-ctv") word = "--kv-v";
    }
    std::reverse(words.begin(), words.end());  // CLI11 takes a vector from its end
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const std::string mistake = ExplainMistake(app);
    if (mistake.empty()) {
      app.exit(error);
    } else {
      Note("sluice: " + mistake);
    }
    return kExitUsage;
  }
  platform::InterruptFlag interrupt;
  interrupt_flag = &interrupt;
  const Result<int> result = action();
  return result ? *result : Report(result.error());
}

}  // namespace

const std::atomic<bool>& Interrupted() { return interrupt_flag->flag(); }
void ResetInterrupted() { interrupt_flag->Reset(); }

int Report(const Error& error) {
  if (error.code != ErrorCode::kInterrupted) Note("sluice: " + Printable(error.message));
  return ExitCodeFor(error.code);
}

}  // namespace sluice::app

int main(int argc, char** argv) { return sluice::app::Main(argc, argv); }
