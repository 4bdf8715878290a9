// sluice quantize: a model file in other weight types, and what that costs, tensor by tensor.
#include "sluice/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.h"
#include "output.h"
#include "resolve.h"
#include "sluice/engine.h"

namespace sluice::app {

namespace {

using nlohmann::ordered_json;
using quantize::QuantizeReport;
using quantize::TensorReport;

struct QuantizeFlags {
  std::string input, output, type, token_embedding, output_type, importance;
  std::vector<std::string> overrides;
  int threads = 0;
  bool allow_requantize = false, json = false;
};

std::string_view NameOf(formats::DType dtype) { return formats::Name(dtype); }

// The errors of tensors that were recoded, all together.
quantize::ErrorSums Total(const QuantizeReport& report) {
  quantize::ErrorSums sums;
  for (const TensorReport& tensor : report.tensors) sums.Add(tensor.errors);
  return sums;
}

double BitsPerWeight(const QuantizeReport& report) {
  uint64_t elements = 0;
  for (const TensorReport& tensor : report.tensors) elements += tensor.elements;
  return elements == 0 ? 0 : 8 * static_cast<double>(report.bytes) / static_cast<double>(elements);
}

ordered_json Json(const TensorReport& tensor) {
  ordered_json json{{"name", tensor.name},
                    {"from", NameOf(tensor.source)},
                    {"type", NameOf(tensor.dtype)},
                    {"bytes", tensor.bytes},
                    {"source_bytes", tensor.source_bytes}};
  if (!tensor.recoded) return json;
  json["rmse"] = tensor.errors.Rmse();
  json["relative_error"] = tensor.errors.RelativeError();
  if (tensor.by_importance) json["weighted_relative_error"] = tensor.errors.WeightedRelativeError();
  json["worst_block"] = {{"rmse", std::sqrt(tensor.errors.worst)},
                         {"row", tensor.errors.worst_row},
                         {"column", tensor.errors.worst_column}};
  if (tensor.unseen_matrices > 0) json["unseen_experts"] = tensor.unseen_matrices;
  if (tensor.substitute) json["substitute"] = true;
  if (tensor.deserves_more) json["deserves_more"] = true;
  return json;
}

void PrintJson(const QuantizeReport& report, const QuantizeFlags& flags) {
  ordered_json json{{"output", flags.output},
                    {"type", flags.type},
                    {"file_bytes", report.file_bytes},
                    {"bytes", report.bytes},
                    {"source_bytes", report.source_bytes},
                    {"bits_per_weight", BitsPerWeight(report)},
                    {"relative_error", Total(report).RelativeError()},
                    {"requantized", report.requantized},
                    {"tensors", ordered_json::array()}};
  for (const TensorReport& tensor : report.tensors) json["tensors"].push_back(Json(tensor));
  std::cout << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

void PrintTable(const QuantizeReport& report) {
  const bool weighted = std::ranges::any_of(report.tensors, &TensorReport::by_importance);
  std::printf("%-32s %-16s %10s %10s %8s %s worst block\n", "tensor", "type", "bytes", "RMSE", "error",
              weighted ? "weighted" : "");
  for (const TensorReport& tensor : report.tensors) {
    const std::string type = tensor.recoded
                                 ? fmt::format("{} → {}", NameOf(tensor.source), NameOf(tensor.dtype))
                                 : std::string(NameOf(tensor.dtype));
    std::printf("%-32s %s %10s", tensor.name.c_str(), fmt::format("{:16}", type).c_str(),
                FormatBytes(tensor.bytes).c_str());
    if (tensor.recoded) {
      const quantize::ErrorSums& errors = tensor.errors;
      std::printf(" %10.3g %6.2f %%", errors.Rmse(), 100 * errors.RelativeError());
      if (weighted) {
        std::printf(" %s", tensor.by_importance
                               ? fmt::format("{:6.2f} %", 100 * errors.WeightedRelativeError()).c_str()
                               : "       –");
      }
      std::printf("  %.3g at row %llu, column %llu%s%s", std::sqrt(errors.worst),
                  static_cast<unsigned long long>(errors.worst_row),
                  static_cast<unsigned long long>(errors.worst_column),
                  tensor.substitute ? "  (rows too short for the mix's type)" : "",
                  tensor.deserves_more ? "  ← deserves more bits" : "");
    }
    std::printf("\n");
  }
  std::printf("\n%s → %s of weights, %.2f bits a weight, error %.2f %% in all\n",
              FormatBytes(report.source_bytes).c_str(), FormatBytes(report.bytes).c_str(),
              BitsPerWeight(report), 100 * Total(report).RelativeError());
}

// Below this many bits a weight it shows which columns the search cared for.
constexpr double kFewBits = 3;

// Remarks that hold for the whole file.
void PrintNotes(const QuantizeReport& report, const QuantizeFlags& flags) {
  if (BitsPerWeight(report) < kFewBits && flags.importance.empty())
    Note("with so few bits a weight, importance data (--imatrix) would help");
  if (report.requantized > 0) {
    Note(fmt::format("{} tensors were quantised before: what that lost is not in these errors",
                     report.requantized));
  }
  if (report.without_importance > 0)
    Note(fmt::format("{} tensors are unknown to the importance data; all of their columns counted alike",
                     report.without_importance));
  for (const TensorReport& tensor : report.tensors) {
    if (tensor.unseen_matrices > 0)
      Note(fmt::format(
          "{}: the importance data never saw {} of its matrices; all of their columns counted alike",
          tensor.name, tensor.unseen_matrices));
  }
  std::string deserving;
  for (const TensorReport& tensor : report.tensors) {
    if (tensor.deserves_more) deserving += fmt::format(" {}", tensor.name);
  }
  if (!deserving.empty()) Note("more bits would do good (--tensor-type NAME=TYPE):" + deserving);
}

Result<quantize::TypeWishes> Wishes(const QuantizeFlags& flags) {
  quantize::TypeWishes wishes;
  SLUICE_TRY_ASSIGN(wishes.mix, quantize::FindMix(flags.type));
  if (!flags.token_embedding.empty()) {
    SLUICE_TRY_ASSIGN(wishes.token_embedding, quantize::ParseType(flags.token_embedding));
  }
  if (!flags.output_type.empty()) {
    SLUICE_TRY_ASSIGN(wishes.output, quantize::ParseType(flags.output_type));
  }
  for (const std::string& text : flags.overrides) {
    SLUICE_TRY_ASSIGN(quantize::TypeOverride wish, quantize::ParseOverride(text));
    wishes.overrides.push_back(std::move(wish));
  }
  return wishes;
}

Result<int> Quantize(const QuantizeFlags& flags) {
  quantize::QuantizeOptions options{.allow_requantize = flags.allow_requantize};
  SLUICE_TRY_ASSIGN(options.types, Wishes(flags));
  std::optional<quantize::ImportanceFile> importance;
  if (!flags.importance.empty()) {
    SLUICE_TRY_ASSIGN(importance, quantize::ImportanceFile::Open(flags.importance));
    options.importance = &*importance;
    options.other_inputs.push_back(flags.importance);
  }
  SLUICE_TRY_ASSIGN(const std::string input, ResolveModel(flags.input));
  SLUICE_TRY_ASSIGN(const auto engine, Engine::Create({.threads = flags.threads}));
  ProgressLine progress("quantising");
  options.progress = [&](uint64_t done, uint64_t total) {
    progress.Show(static_cast<double>(done), static_cast<double>(total));
    return !Interrupted().load();
  };
  SLUICE_TRY_ASSIGN(const QuantizeReport report,
                    quantize::QuantizeFile(input, flags.output, options, *engine->context().pool));
  progress.Clear();
  if (flags.json) {
    PrintJson(report, flags);
  } else {
    PrintTable(report);
  }
  PrintNotes(report, flags);
  return kExitOk;
}

}  // namespace

void AddQuantize(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("quantize", "A model file in other weight types, with the error of each tensor");
  auto flags = std::make_shared<QuantizeFlags>();
  command->add_option("input", flags->input, "A GGUF file, or the name of a model")->required();
  command->add_option("output", flags->output, "The file to write")->required();
  command->add_option("type", flags->type, "Weight type or mix, e.g. Q4_K_M or Q8_0")->required();
  command
      ->add_option(
          "--tensor-type", flags->overrides,
          "PATTERN=TYPE: a type for the tensors whose names match (*, ?, [a-z], or a part of the name)")
      ->allow_extra_args(false);
  command->add_option("--token-embedding-type", flags->token_embedding, "Type of the token embedding");
  command->add_option("--output-type,--output-tensor-type", flags->output_type, "Type of the output matrix");
  command->add_option("--imatrix", flags->importance, "Importance of the columns, from a GGUF imatrix file");
  command->add_flag("--allow-requantize", flags->allow_requantize,
                    "Also from a file that is quantised already");
  command->add_option("-t,--threads", flags->threads, "Worker threads (default: one for each big core)");
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  command->final_callback([flags, &action] { action = [flags] { return Quantize(*flags); }; });
}

}  // namespace sluice::app
