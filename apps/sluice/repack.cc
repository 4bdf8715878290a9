// sluice pack, split, merge: the same weights in other files.
#include "sluice/repack.h"

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "output.h"
#include "resolve.h"
#include "sluice/gguf.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

struct PackFlags {
  std::string input, output, alignment = "4096";
  std::vector<std::string> set, remove;
};

struct SplitFlags {
  std::string input, prefix, max_size;
};

struct MergeFlags {
  std::string input, output;
};

gguf::CopyProgress ShowOn(ProgressLine& line) {
  return [&line](uint64_t done, uint64_t total) {
    line.Show(static_cast<double>(done), static_cast<double>(total));
    return !Interrupted().load();
  };
}

void Say(const gguf::RepackReport& report, const std::string& output) {
  Note(fmt::format("{}: {} tensors in {}, {}, with checksums{}", output, report.tensors,
                   report.files == 1 ? "one file" : fmt::format("{} files", report.files),
                   FormatBytes(report.file_bytes), report.compared ? " as the source has them" : ""));
}

// A key that a model can't be without, or that says how the file is laid out, stays.
Status Remove(const std::string& key, gguf::Metadata& metadata) {
  if (key == "general.architecture" || key == gguf::kAlignmentKey || key.starts_with("split."))
    return Fail(ErrorCode::kInvalidArgument, "--remove {}: the file needs this key", key);
  if (!metadata.Has(key)) return Fail(ErrorCode::kInvalidArgument, "--remove {}: there is no such key", key);
  metadata.Remove(key);
  return {};
}

Result<gguf::Metadata> Edited(const gguf::GgufFile& source, const PackFlags& flags) {
  gguf::Metadata metadata = source.metadata().Copy();
  for (const std::string& key : flags.remove) SLUICE_TRY(Remove(key, metadata));
  for (const std::string& text : flags.set) SLUICE_TRY(gguf::ApplyOverride(text, metadata));
  return metadata;
}

Result<int> Pack(const PackFlags& flags) {
  gguf::RepackOptions options;
  SLUICE_TRY_ASSIGN(const uint64_t alignment, ParseSize(flags.alignment));
  if (!std::has_single_bit(alignment) || alignment > kMiB)
    return Fail(ErrorCode::kInvalidArgument, "--alignment {}: must be a power of two up to 1M",
                flags.alignment);
  options.alignment = static_cast<uint32_t>(alignment);
  SLUICE_TRY_ASSIGN(const std::string input, ResolveModel(flags.input));
  SLUICE_TRY_ASSIGN(const gguf::GgufFile source, gguf::GgufFile::Open(input));
  SLUICE_TRY_ASSIGN(gguf::Metadata metadata, Edited(source, flags));
  auto order = model::ReadingOrder(source);
  if (order) {
    options.order = *std::move(order);
  } else {
    Note("tensors stay in the order they have: " + order.error().message);
  }
  ProgressLine progress("packing");
  options.progress = ShowOn(progress);
  SLUICE_TRY_ASSIGN(const gguf::RepackReport report,
                    gguf::RepackFile(source, std::move(metadata), options, flags.output));
  progress.Clear();
  Say(report, flags.output);
  return kExitOk;
}

Result<int> Split(const SplitFlags& flags) {
  SLUICE_TRY_ASSIGN(const uint64_t most, ParseSize(flags.max_size));
  SLUICE_TRY_ASSIGN(const std::string input, ResolveModel(flags.input));
  SLUICE_TRY_ASSIGN(const gguf::GgufFile source, gguf::GgufFile::Open(input));
  std::string prefix = flags.prefix;
  if (prefix.ends_with(".gguf")) prefix.resize(prefix.size() - 5);
  ProgressLine progress("splitting");
  SLUICE_TRY_ASSIGN(const gguf::RepackReport report, gguf::SplitFile(source, most, ShowOn(progress), prefix));
  progress.Clear();
  Say(report, gguf::ShardPath(prefix, 1, static_cast<uint32_t>(report.files)));
  return kExitOk;
}

Result<int> Merge(const MergeFlags& flags) {
  SLUICE_TRY_ASSIGN(const std::string input, ResolveModel(flags.input));
  SLUICE_TRY_ASSIGN(const gguf::GgufFile source, gguf::GgufFile::Open(input));
  ProgressLine progress("merging");
  SLUICE_TRY_ASSIGN(
      const gguf::RepackReport report,
      gguf::RepackFile(source, source.metadata().Copy(), {.progress = ShowOn(progress)}, flags.output));
  progress.Clear();
  Say(report, flags.output);
  return kExitOk;
}

}  // namespace

void AddPack(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "pack", "A model file laid out for streaming: tensors aligned and in the order of use, with checksums");
  auto flags = std::make_shared<PackFlags>();
  command->add_option("input", flags->input, "A GGUF file, or the name of a model")->required();
  command->add_option("output", flags->output, "The file to write")->required();
  command
      ->add_option("--set", flags->set,
                   "Change metadata: KEY=TYPE:VALUE, with int, float, bool or str (may be repeated)")
      ->allow_extra_args(false);
  command->add_option("--remove", flags->remove, "Leave out this key of the metadata (may be repeated)")
      ->allow_extra_args(false);
  command->add_option("--alignment", flags->alignment, "Of the tensors, in bytes")->capture_default_str();
  command->final_callback([flags, &action] { action = [flags] { return Pack(*flags); }; });
}

void AddSplit(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("split", "A model in parts: PREFIX-00001-of-0000N.gguf and so on");
  auto flags = std::make_shared<SplitFlags>();
  command->add_option("input", flags->input, "A GGUF file, or the name of a model")->required();
  command->add_option("prefix", flags->prefix, "What the names of the parts begin with")->required();
  command
      ->add_option("--max-size", flags->max_size, "Most bytes of a part, e.g. 2G (FAT holds files below 4G)")
      ->required();
  command->final_callback([flags, &action] { action = [flags] { return Split(*flags); }; });
}

void AddMerge(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("merge", "A split model whole again");
  auto flags = std::make_shared<MergeFlags>();
  command->add_option("input", flags->input, "The first part, NAME-00001-of-0000N.gguf")->required();
  command->add_option("output", flags->output, "The file to write")->required();
  command->final_callback([flags, &action] { action = [flags] { return Merge(*flags); }; });
}

}  // namespace sluice::app
