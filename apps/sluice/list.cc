// sluice list: the models on this device.
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "glyphs.h"
#include "output.h"
#include "sluice/library.h"

namespace sluice::app {

namespace {

struct Listed {
  FoundModel model;
  ModelSummary summary;
};

constexpr size_t kColumns = 7;
using Row = std::array<std::string, kColumns>;

void PrintTable(const std::vector<Listed>& models) {
  std::vector<Row> rows{{"NAME", "SIZE", "PARAMETERS", "ARCHITECTURE", "TYPE", "CONTEXT", "WHERE"}};
  for (const auto& [model, summary] : models) {
    rows.push_back({model.name, FormatBytes(model.size_bytes), FormatCount(summary.parameters),
                    Printable(summary.architecture), summary.type,
                    summary.context_length > 0 ? std::to_string(summary.context_length) : "?",
                    std::string(Name(model.source))});
  }
  std::array<int, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < kColumns; ++i) {
      line += row[i];
      if (i + 1 < kColumns) line.append(static_cast<size_t>(widths[i] - Columns(row[i]) + 2), ' ');
    }
    std::cout << line << "\n";
  }
}

void PrintJson(const std::vector<Listed>& models) {
  nlohmann::ordered_json json;
  json["models"] = nlohmann::ordered_json::array();
  for (const auto& [model, summary] : models) {
    json["models"].push_back({{"name", model.name}, {"path", model.path}, {"size_bytes", model.size_bytes},
                              {"source", Name(model.source)}, {"architecture", summary.architecture},
                              {"parameters", summary.parameters}, {"type", summary.type},
                              {"context_length", summary.context_length}});
  }
  std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

Result<int> List(bool as_json) {
  const platform::Environment environment = platform::Environment::FromProcess();
  std::vector<Listed> models;
  for (FoundModel& model : FindModels({.environment = environment})) {
    Result<ModelSummary> summary = Summarize(model.path);
    if (summary) {
      models.push_back({std::move(model), *std::move(summary)});
    } else if (summary.error().code != ErrorCode::kUnsupported) {
      Note("left out: " + Printable(summary.error().message));
    }
  }
  if (as_json) {
    PrintJson(models);
  } else if (!models.empty()) {
    PrintTable(models);
  } else {
    Note(fmt::format("there are no models: put GGUF files into {}", platform::FindUserFolders(environment).models));
  }
  return kExitOk;
}

}  // namespace

void AddList(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("list", "The models on this device, those of other programs included");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "One JSON object on stdout");
  command->final_callback([as_json, &action] { action = [as_json] { return List(*as_json); }; });
}

}  // namespace sluice::app
