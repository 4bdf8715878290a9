// sluice convert: a folder as models are published (weights, config.json, tokenizer) → a GGUF file.
#include "sluice/convert.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "command.h"
#include "output.h"
#include "sluice/engine.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

struct ConvertFlags {
  std::string folder, output, type, name, pre;
  int threads = 0;
};

Result<std::optional<formats::DType>> ParseMatrixType(const std::string& text) {
  constexpr std::pair<std::string_view, formats::DType> kTypes[] = {{"f32", formats::DType::kF32},
                                                                    {"f16", formats::DType::kF16},
                                                                    {"bf16", formats::DType::kBF16},
                                                                    {"q8_0", formats::DType::kQ8_0}};
  if (text.empty() || text == "auto") return std::optional<formats::DType>();
  std::string lower = text;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const auto& [name, type] : kTypes) {
    if (name == lower) return std::optional(type);
  }
  return Fail(ErrorCode::kInvalidArgument,
              "--type '{}'; expected auto, f32, f16, bf16 or q8_0 (fewer bits: sluice quantize)", text);
}

Result<int> Convert(const ConvertFlags& flags) {
  convert::ConvertOptions options{.name = flags.name, .pre = flags.pre};
  SLUICE_TRY_ASSIGN(options.type, ParseMatrixType(flags.type));
  SLUICE_TRY_ASSIGN(const auto engine, Engine::Create({.threads = flags.threads}));
  ProgressLine progress("converting");
  options.progress = [&](uint64_t done, uint64_t total) {
    progress.Show(static_cast<double>(done), static_cast<double>(total));
    return !Interrupted().load();
  };
  SLUICE_TRY_ASSIGN(const convert::ConvertReport report,
                    convert::ConvertFolder(flags.folder, flags.output, options, *engine->context().pool));
  progress.Clear();
  for (const std::string& warning : report.warnings) Note(warning);
  Note(fmt::format("{}: {}, {} parameters in {} tensors, {}", flags.output, report.architecture,
                   FormatCount(report.parameters), report.tensors, FormatBytes(report.file_bytes)));
  return kExitOk;
}

}  // namespace

void AddConvert(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "convert", "A Hugging Face folder → a GGUF file: sluice convert FOLDER -o MODEL.gguf");
  auto flags = std::make_shared<ConvertFlags>();
  command
      ->add_option(
          "folder", flags->folder,
          "The folder with config.json, the weights (safetensors, or pytorch_model.bin) and the tokenizer")
      ->required();
  command->add_option("-o,--output,--outfile", flags->output, "The file to write")->required();
  command->add_option("--type,--outtype", flags->type,
                      "Of the matrices: auto (each keeps its own), f32, f16, bf16 or q8_0 (default: auto)");
  command->add_option("--name", flags->name, "The model's name (default: the folder's)");
  command->add_option("--pre", flags->pre,
                      "How GGUF files name the way the tokenizer cuts words, where it is not known");
  command->add_option("-t,--threads", flags->threads, "Worker threads (default: one for each big core)");
  command->final_callback([flags, &action] { action = [flags] { return Convert(*flags); }; });
}

}  // namespace sluice::app
