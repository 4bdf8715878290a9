// How a subcommand is put together: one file each, with an Add… function that declares its flags and what runs.
//
// A command's work returns Result<int>, an exit code or an error; Run… functions never print errors themselves.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

#include "sluice/result.h"

namespace sluice::app {

// What the chosen subcommand will do, set when the command line was read.
using Action = std::function<Result<int>()>;

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitDoesNotFit = 3;
inline constexpr int kExitInterrupted = 130;

// Prints an error for people and returns its exit code.
int Report(const Error& error);

void AddBench(CLI::App& app, Action& action);
void AddChat(CLI::App& app, Action& action);
void AddConvert(CLI::App& app, Action& action);
void AddEval(CLI::App& app, Action& action);
void AddImatrix(CLI::App& app, Action& action);
void AddInspect(CLI::App& app, Action& action);
void AddList(CLI::App& app, Action& action);
void AddLogits(CLI::App& app, Action& action);
void AddMerge(CLI::App& app, Action& action);
void AddPack(CLI::App& app, Action& action);
void AddPlan(CLI::App& app, Action& action);
void AddPlot(CLI::App& app, Action& action);
void AddQuantize(CLI::App& app, Action& action);
void AddRun(CLI::App& app, Action& action);
void AddSplit(CLI::App& app, Action& action);
void AddSynth(CLI::App& app, Action& action);
void AddTemplate(CLI::App& app, Action& action);
void AddTokenize(CLI::App& app, Action& action);
void AddVerify(CLI::App& app, Action& action);

}  // namespace sluice::app
