// sluice synth: a random-weight model of a real shape.
#include "sluice/synth.h"

#include <cstdio>
#include <memory>

#include "command.h"
#include "output.h"
#include "sluice/result.h"

namespace sluice::app {

namespace {

struct SynthFlags {
  std::string shape, output, type;
  uint64_t seed = 1;
};

Result<int> Synth(const SynthFlags& flags) {
  SLUICE_TRY_ASSIGN(const quantize::SynthShape* shape, quantize::FindShape(flags.shape));
  SLUICE_TRY_ASSIGN(const quantize::Mix* mix, quantize::FindMix(flags.type));
  ProgressLine progress("writing");
  uint64_t size = 0;
  const quantize::SynthOptions options{.seed = flags.seed, .progress = [&](uint64_t done, uint64_t total) {
                                         size = total;
                                         progress.Show(static_cast<double>(done), static_cast<double>(total));
                                         return !Interrupted().load();
                                       }};
  SLUICE_TRY(quantize::SynthesizeFile(*shape, *mix, options, flags.output));
  progress.Clear();
  Note(fmt::format("{}: {} as {}, {}, random weights", flags.output, shape->name, mix->name, FormatBytes(size)));
  return kExitOk;
}

std::string Names() {
  std::string names;
  for (const quantize::SynthShape& shape : quantize::AllShapes()) names += fmt::format("{}{}", names.empty() ? "" : ", ", shape.name);
  return names;
}

}  // namespace

void AddSynth(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("synth", "A random-weight model of a real shape, to try a size");
  auto flags = std::make_shared<SynthFlags>();
  command->add_option("shape", flags->shape, "One of " + Names())->required();
  command->add_option("output", flags->output, "The file to write")->required();
  command->add_option("type", flags->type, "Weight type or mix, e.g. Q4_K_M or Q8_0")->required();
  command->add_option("--seed", flags->seed, "Same seed, same file")->capture_default_str();
  command->final_callback([flags, &action] { action = [flags] { return Synth(*flags); }; });
}

}  // namespace sluice::app
