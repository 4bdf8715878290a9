// sluice: the command-line program. Reads the command line, runs one subcommand, and turns errors into exit codes.
#include <cstdio>

#include "command.h"
#include "output.h"
#include "sluice/terminal.h"

namespace sluice::app {

namespace {

// Made by main(), looked at by commands through Interrupted().
platform::InterruptFlag* interrupt_flag = nullptr;

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
  AddInspect(app, action);
  AddTokenize(app, action);
  AddTemplate(app, action);
  AddLogits(app, action);
  AddEval(app, action);
  AddBench(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  platform::InterruptFlag interrupt;
  interrupt_flag = &interrupt;
  const Result<int> result = action();
  return result ? *result : Report(result.error());
}

}  // namespace

const std::atomic<bool>& Interrupted() { return interrupt_flag->flag(); }

int Report(const Error& error) {
  if (error.code != ErrorCode::kInterrupted) Note("sluice: " + error.message);
  return ExitCodeFor(error.code);
}

}  // namespace sluice::app

int main(int argc, char** argv) { return sluice::app::Main(argc, argv); }
