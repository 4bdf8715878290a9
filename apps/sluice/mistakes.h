// Mistakes on the command line, explained with the nearest thing that is right.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace sluice::app {

// After a parse that failed: which subcommand or flag is unknown, and what may have been meant. Empty when that is not
// what was wrong.
std::string ExplainMistake(const CLI::App& app);

}  // namespace sluice::app
