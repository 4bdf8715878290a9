// sluice quantize: a model file in other weight types, and what that costs, tensor by tensor.
#include "sluice/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "calibration_text.h"
#include "command.h"
#include "output.h"
#include "quantize_fit.h"
#include "resolve.h"
#include "sluice/engine.h"
#include "sluice/model.h"

namespace sluice::app {

namespace {

using nlohmann::ordered_json;
using quantize::QuantizeReport;
using quantize::TensorReport;

struct QuantizeFlags {
  std::string input, output, type, token_embedding, output_type, importance;
  std::vector<std::string> overrides;
  std::string feedback, fit, sample, memory;
  TextFlags text;
  int64_t windows = 12, context_length = 0;
  int probes = 64;
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

void PrintJson(const QuantizeReport& report, const QuantizeFlags& flags,
               const std::optional<FitSummary>& fit) {
  ordered_json json{{"output", flags.output},
                    {"type", flags.type.empty() ? "fit" : flags.type},
                    {"file_bytes", report.file_bytes},
                    {"bytes", report.bytes},
                    {"source_bytes", report.source_bytes},
                    {"bits_per_weight", BitsPerWeight(report)},
                    {"relative_error", Total(report).RelativeError()},
                    {"requantized", report.requantized},
                    {"tensors", ordered_json::array()}};
  for (const TensorReport& tensor : report.tensors) json["tensors"].push_back(Json(tensor));
  if (fit) json["fit"] = FitJson(*fit);
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
  if (!flags.type.empty()) {
    SLUICE_TRY_ASSIGN(wishes.mix, quantize::FindMix(flags.type));
  }
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

Result<EngineOptions> EngineOptionsOf(const QuantizeFlags& flags) {
  EngineOptions options{.threads = flags.threads};
  if (!flags.memory.empty()) {
    SLUICE_TRY_ASSIGN(options.memory_bytes, ParseSize(flags.memory));
  }
  return options;
}

// Encodes with error feedback what is to be encoded.
Result<quantize::EncodedTensors> Feedback(const QuantizeFlags& flags, const std::string& input,
                                          const quantize::QuantizeOptions& quantize, const Engine& engine) {
  std::vector<quantize::TypeChoice> choices = quantize.choices;
  if (choices.empty()) {
    SLUICE_TRY_ASSIGN(const gguf::GgufFile file, gguf::GgufFile::Open(input));
    SLUICE_TRY_ASSIGN(choices, quantize::ChooseTypes(file.tensors(), file.metadata(), quantize.types));
  }
  SLUICE_TRY_ASSIGN(const Vocabulary vocabulary, OpenVocabulary(input));
  quantize::FeedbackOptions options;
  SLUICE_TRY_ASSIGN(options.text, ReadChunks(flags.feedback, vocabulary.tokenizer, flags.text));
  ProgressLine progress("error feedback");
  options.progress = [&](double share) {
    progress.Show(share, 1);
    return !Interrupted().load();
  };
  return quantize::EncodeWithFeedback(engine.context(), input, choices, std::move(options),
                                      flags.output + ".feedback");
}

// Writes the model in the types that the options say.
Result<QuantizeReport> Write(const QuantizeFlags& flags, const std::string& input, const std::string& output,
                             quantize::QuantizeOptions options, const Engine& engine) {
  quantize::EncodedTensors tensors;
  std::optional<gguf::GgufFile> encoded;
  if (!flags.feedback.empty()) {
    SLUICE_TRY_ASSIGN(tensors, Feedback(flags, input, options, engine));
    SLUICE_TRY_ASSIGN(encoded, gguf::GgufFile::Open(input));
    SLUICE_TRY(tensors.ReplaceIn(*encoded));
    options.encoded = &*encoded;
  }
  ProgressLine progress("quantising");
  options.progress = [&](uint64_t done, uint64_t total) {
    progress.Show(static_cast<double>(done), static_cast<double>(total));
    return !Interrupted().load();
  };
  return quantize::QuantizeFile(input, output, options, *engine.context().pool);
}

// Chooses types by measurement on sample text; sets them in the options.
Result<FitSummary> ChooseByFit(const QuantizeFlags& flags, const std::string& input, const Engine& engine,
                               const SampleDivergence& sample, quantize::QuantizeOptions& options) {
  FitSummary summary;
  SLUICE_TRY_ASSIGN(summary.budget_bytes, FitBudget(flags.fit, input, flags.context_length));
  SLUICE_TRY_ASSIGN(const gguf::GgufFile source, gguf::GgufFile::Open(input));
  std::optional<ProgressLine> progress;
  std::string shown;
  quantize::FitOptions fit{.budget_bytes = summary.budget_bytes,
                           .types = options.types,
                           .importance = options.importance,
                           .most_probes = flags.probes,
                           .independent = flags.feedback.empty(),
                           .scratch = flags.output + ".probe"};
  fit.make = [&](std::span<const quantize::TypeChoice> choices, const std::string& path) -> Status {
    progress.reset();
    quantize::QuantizeOptions probe = options;
    probe.types.mix = &quantize::AllMixes().front();
    probe.choices.assign(choices.begin(), choices.end());
    SLUICE_TRY(Write(flags, input, path, probe, engine));
    return {};
  };
  fit.measure = [&](std::span<const gguf::Replacement> replacements) -> Result<double> {
    SLUICE_TRY_ASSIGN(const eval::Divergence divergence, sample.Measure(replacements));
    return divergence.kl().mean();
  };
  fit.progress = [&](std::string_view what, double done, double total) {
    if (!progress || shown != what) progress.emplace(shown = what);
    progress->Show(done, total);
    return !Interrupted().load();
  };
  SLUICE_TRY_ASSIGN(summary.report, quantize::Fit(source, fit, *engine.context().pool));
  options.choices = summary.report.choices;
  options.types.mix = summary.report.name;
  return summary;
}

Status CheckFlags(const QuantizeFlags& flags) {
  if (flags.type.empty() == flags.fit.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "expected a type such as Q4_K_M, or --fit with a size: one of the two");
  if (!flags.fit.empty() && flags.sample.empty() && flags.feedback.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "--fit measures on text: give some with --sample (or --feedback)");
  if (flags.probes < 1 || flags.windows < 1)
    return Fail(ErrorCode::kInvalidArgument, "--probes and --sample-windows are 1 or more");
  return {};
}

Result<int> Quantize(const QuantizeFlags& flags) {
  SLUICE_TRY(CheckFlags(flags));
  quantize::QuantizeOptions options{.allow_requantize = flags.allow_requantize};
  SLUICE_TRY_ASSIGN(options.types, Wishes(flags));
  std::optional<quantize::ImportanceFile> importance;
  if (!flags.importance.empty()) {
    SLUICE_TRY_ASSIGN(importance, quantize::ImportanceFile::Open(flags.importance));
    options.importance = &*importance;
  }
  for (const std::string* text : {&flags.importance, &flags.feedback, &flags.sample}) {
    if (!text->empty()) options.other_inputs.push_back(*text);
  }
  SLUICE_TRY_ASSIGN(const std::string input, ResolveModel(flags.input));
  SLUICE_TRY_ASSIGN(EngineOptions engine_options, EngineOptionsOf(flags));
  SLUICE_TRY_ASSIGN(const auto engine, Engine::Create(engine_options));

  std::unique_ptr<SampleDivergence> sample;
  std::optional<FitSummary> fit;
  if (!flags.fit.empty()) {
    const std::string& text = flags.sample.empty() ? flags.feedback : flags.sample;
    SLUICE_TRY_ASSIGN(sample, SampleDivergence::Create(*engine, input, text, flags.text.special,
                                                       flags.windows, flags.output + ".base-run"));
    SLUICE_TRY_ASSIGN(fit, ChooseByFit(flags, input, *engine, *sample, options));
  }
  SLUICE_TRY_ASSIGN(const QuantizeReport report, Write(flags, input, flags.output, options, *engine));
  if (fit) {
    const gguf::Replacement whole{flags.output, {}};
    SLUICE_TRY_ASSIGN(fit->measured, sample->Measure(std::span(&whole, 1)));
  }
  if (flags.json) {
    PrintJson(report, flags, fit);
  } else {
    if (fit) PrintFit(*fit);
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
  command->add_option("type", flags->type, "Weight type or mix, e.g. Q4_K_M or Q8_0");
  command
      ->add_option(
          "--tensor-type", flags->overrides,
          "PATTERN=TYPE: a type for the tensors whose names match (*, ?, [a-z], or a part of the name)")
      ->allow_extra_args(false);
  command->add_option("--token-embedding-type", flags->token_embedding, "Type of the token embedding");
  command->add_option("--output-type,--output-tensor-type", flags->output_type, "Type of the output matrix");
  command->add_option("--imatrix", flags->importance, "Importance of the columns, from a GGUF imatrix file");
  command->add_option(
      "--feedback", flags->feedback,
      "Text like that which the model is for: quantise with second-order error feedback on it");
  flags->text.AddTo(*command);
  command->add_option(
      "--fit", flags->fit,
      "Instead of a type: choose each tensor's for a file of this size (8.5G), or for a device (phone-8gb)");
  command->add_option("--sample", flags->sample, "Text that --fit measures on (default: that of --feedback)");
  command->add_option("--sample-windows", flags->windows, "Windows of 512 tokens of it, at most")
      ->capture_default_str();
  command
      ->add_option("--probes", flags->probes,
                   "Measurements of single tensors at most, to find out which matter")
      ->capture_default_str();
  command->add_option("-c,--ctx-size,--context", flags->context_length,
                      "Context that --fit DEVICE leaves room for (default: as plan)");
  command->add_option("--memory", flags->memory,
                      "Budget for --feedback and --fit, e.g. 8G (default: what is free)");
  command->add_flag("--allow-requantize", flags->allow_requantize,
                    "Also from a file that is quantised already");
  command->add_option("-t,--threads", flags->threads, "Worker threads (default: one for each big core)");
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  command->final_callback([flags, &action] { action = [flags] { return Quantize(*flags); }; });
}

}  // namespace sluice::app
