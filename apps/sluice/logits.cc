// sluice logits: the raw logits at every position, for comparisons with other programs.
#include <charconv>
#include <cstdio>
#include <memory>

#include "command.h"
#include "options.h"
#include "output.h"
#include "sluice/atomic_file.h"

namespace sluice::app {

namespace {

struct LogitsFlags {
  ModelFlags model;
  std::vector<TokenId> ids;
  std::string prompt, output;
  bool last = false;
};

Result<int> Logits(const LogitsFlags& flags) {
  SLUICE_TRY_ASSIGN(ConversationOptions options, flags.model.Conversation());
  if (options.context_length == 0) options.context_length = static_cast<int64_t>(flags.ids.size());
  SLUICE_TRY_ASSIGN(const OpenedModel opened, OpenModel(flags.model, options, {}));
  std::vector<TokenId> ids = flags.ids;
  if (ids.empty()) {
    SLUICE_TRY_ASSIGN(ids, opened.model->EncodeText(flags.prompt));
  }
  if (ids.empty()) return Fail(ErrorCode::kInvalidArgument, "there are no ids: give --ids 1,2,3 or a prompt");
  if (options.context_length == 0) options.context_length = static_cast<int64_t>(ids.size());
  SLUICE_TRY_ASSIGN(const auto conversation, Conversation::Create(*opened.engine, opened.model, options));
  const size_t vocab_size = static_cast<size_t>(opened.model->config().vocab_size);
  const size_t rows = flags.last ? 1 : ids.size();
  SLUICE_TRY_ASSIGN(auto file, platform::AtomicWriter::Create(flags.output, rows * vocab_size * sizeof(float)));
  Status written;
  SLUICE_TRY(conversation->session().ReadAll(ids, [&](size_t index, std::span<const float> logits) {
    if (written && (!flags.last || index + 1 == ids.size())) written = file.Write(std::as_bytes(logits));
  }));
  SLUICE_TRY(written);
  SLUICE_TRY(file.Commit());
  Note(fmt::format("{}: float32 [{}, {}]", flags.output, rows, vocab_size));
  return kExitOk;
}

}  // namespace

void AddLogits(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("logits", "Raw float32 logits [positions, vocabulary], for comparisons");
  auto flags = std::make_shared<LogitsFlags>();
  flags->model.AddTo(*command);
  command->add_option("--ids", flags->ids, "Token ids as they are, e.g. 1,2,3")->delimiter(',');
  command->add_option("-p,--prompt", flags->prompt, "Or a text, encoded with BOS where the model wants one");
  command->add_option("-o,--output", flags->output, "Where to write")->required();
  command->add_flag("--last", flags->last, "Only the last position");
  command->final_callback([flags, &action] { action = [flags] { return Logits(*flags); }; });
}

}  // namespace sluice::app
