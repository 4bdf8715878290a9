// sluice imatrix: which columns of a model's matrices matter, measured on text, for sluice quantize
// --imatrix.
#include <algorithm>
#include <memory>

#include "calibration_text.h"
#include "command.h"
#include "options.h"
#include "output.h"
#include "sluice/quantize.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

struct ImatrixFlags {
  ModelFlags model;
  std::string text_file, output;
  std::vector<std::string> merge;
  TextFlags text;
};

// Reads the text in chunks, each of them begun as the model wants a text to begin.
Status Gather(const ImatrixFlags& flags, const Model& model, quantize::ImportanceGatherer& gatherer) {
  SLUICE_TRY_ASSIGN(const auto chunks, ReadChunks(flags.text_file, model.tokenizer(), flags.text));
  ProgressLine progress("reading the text");
  for (size_t i = 0; i < chunks.size(); ++i) {
    progress.Show(static_cast<double>(i), static_cast<double>(chunks.size()));
    SLUICE_TRY(gatherer.Read(chunks[i], [] { return !Interrupted().load(); }));
  }
  return {};
}

Result<int> Imatrix(ImatrixFlags flags) {
  if (flags.text_file.empty() && flags.merge.empty())
    return Fail(ErrorCode::kInvalidArgument, "nothing to do: give a text with -f, or files with --merge");
  // Room for one chunk, read in one go by operators whose inputs can be looked at.
  flags.model.context_length = flags.text.chunk;
  flags.model.batch = flags.text.chunk;
  flags.model.fusion = runtime::FusionName(runtime::Fusion::kNone);
  SLUICE_TRY_ASSIGN(const ConversationOptions options, flags.model.Conversation());
  SLUICE_TRY_ASSIGN(const OpenedModel opened, OpenModel(flags.model, options, {}));
  SLUICE_TRY_ASSIGN(const auto gatherer,
                    quantize::ImportanceGatherer::Create(opened.engine->context(), opened.model->parts(),
                                                         flags.text.chunk));
  std::vector<std::string> inputs = opened.model->parts().file().Paths();
  inputs.insert(inputs.end(), flags.merge.begin(), flags.merge.end());
  for (const std::string& path : flags.merge) {
    SLUICE_TRY_ASSIGN(const quantize::ImportanceFile file, quantize::ImportanceFile::Open(path));
    SLUICE_TRY(gatherer->Merge(file));
  }
  if (!flags.text_file.empty()) inputs.push_back(flags.text_file);
  if (!flags.text_file.empty()) SLUICE_TRY(Gather(flags, *opened.model, *gatherer));
  SLUICE_TRY_ASSIGN(const auto kept, platform::IdentitiesOf(inputs));
  SLUICE_TRY(gatherer->Write(flags.text_file.empty() ? "merged" : flags.text_file, [&](uint64_t file_bytes) {
    return gguf::CreateFileSink(flags.output, file_bytes, kept);
  }));
  Note(fmt::format("{}: {} tokens read, {} files merged", flags.output, gatherer->tokens(),
                   flags.merge.size()));
  return kExitOk;
}

}  // namespace

void AddImatrix(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("imatrix", "Which weights matter, measured on text, for sluice quantize --imatrix");
  auto flags = std::make_shared<ImatrixFlags>();
  flags->model.AddTo(*command);
  command->add_option("-f,--file", flags->text_file, "Text like that which the model is for");
  command->add_option("-o,--output", flags->output, "The file to write")->required();
  command->add_option("--merge", flags->merge, "Add what this file has (may be repeated)")
      ->allow_extra_args(false);
  flags->text.AddTo(*command);
  command->final_callback([flags, &action] { action = [flags] { return Imatrix(*flags); }; });
}

}  // namespace sluice::app
