#include "measures.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "output.h"
#include "sluice/gguf.h"
#include "sluice/library.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

constexpr int64_t kDefaultWindow = 512;

eval::BaseRun OfModel(const Model& model) {
  return {.model = model.path(),
          .vocabulary_size = static_cast<uint64_t>(model.config().vocab_size),
          .vocabulary_hash = eval::HashVocabulary(model.tokenizer().vocabulary())};
}

}  // namespace

Result<eval::BaseRun> PlanText(const TextFlags& flags, const Model& model, const Conversation& conversation) {
  SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(flags.file));
  SLUICE_TRY_ASSIGN(const std::vector<TokenId> ids, model.EncodeText(text));
  const text::Vocabulary& vocabulary = model.tokenizer().vocabulary();
  eval::WindowOptions options{.context = conversation.context_length(),
                              .whole = conversation.overflow() != kv::Overflow::kStop,
                              .most = flags.chunks};
  if (options.context < 2)
    return Fail(ErrorCode::kInvalidArgument, "a context of {} tokens predicts nothing", options.context);
  if (vocabulary.add_bos()) options.bos = vocabulary.bos();
  eval::BaseRun run = OfModel(model);
  run.text_hash = eval::HashText(text);
  auto windows = eval::CutWindows(ids, options);
  if (!windows) return Annotate(std::move(windows).error(), flags.file);
  run.windows = *std::move(windows);
  return run;
}

Result<eval::BaseRun> PlanTextOf(const eval::BaseRun& base, const Model& model) {
  eval::BaseRun run = OfModel(model);
  run.text_hash = base.text_hash;
  run.windows = base.windows;
  SLUICE_TRY(eval::CheckComparable(base, run));
  return run;
}

Status Predict(const eval::TextWindows& windows, std::string_view what, Conversation& conversation,
               const std::function<Status(int64_t index, std::span<const float> logits)>& sink) {
  ProgressLine progress{std::string(what)};
  Status status;
  int64_t scored = 0;
  for (int64_t window = 0; window < windows.count(); ++window) {
    conversation.session().Truncate(0);
    SLUICE_TRY(conversation.session().ReadAll(windows.Window(window),
                                              [&](size_t position, std::span<const float> logits) {
                                                if (status && windows.Scores(static_cast<int64_t>(position)))
                                                  status = sink(scored++, logits);
                                              }));
    SLUICE_TRY(status);
    progress.Show(static_cast<double>(window + 1), static_cast<double>(windows.count()));
    if (Interrupted().load()) return Fail(ErrorCode::kInterrupted, "stopped");
  }
  return {};
}

Result<eval::Perplexity> MeasurePerplexity(const eval::BaseRun& text, Conversation& conversation) {
  eval::Perplexity perplexity;
  SLUICE_TRY(Predict(text.windows, "perplexity", conversation,
                     [&](int64_t index, std::span<const float> logits) -> Status {
                       perplexity.Add(logits, text.windows.Target(index));
                       return {};
                     }));
  return perplexity;
}

Result<eval::Perplexity> SaveBase(const eval::BaseRun& text, const std::string& path,
                                  std::span<const std::string> inputs, Conversation& conversation) {
  SLUICE_TRY_ASSIGN(const auto kept, platform::IdentitiesOf(inputs));
  SLUICE_TRY_ASSIGN(const auto sink, gguf::CreateFileSink(path, eval::BaseRunWriter::FileBytes(text), kept));
  SLUICE_TRY_ASSIGN(eval::BaseRunWriter writer, eval::BaseRunWriter::Begin(text, *sink));
  eval::Perplexity perplexity;
  SLUICE_TRY(
      Predict(text.windows, "base run", conversation, [&](int64_t index, std::span<const float> logits) {
        perplexity.Add(logits, text.windows.Target(index));
        return writer.Add(logits);
      }));
  SLUICE_TRY(writer.Finish());
  return perplexity;
}

Result<TemporaryBase> SaveTemporaryBase(const eval::BaseRun& text, Conversation& conversation) {
  const std::string folder = platform::Environment::FromProcess().tmpdir;
  const std::string path = fmt::format("{}/sluice-base-{}", folder.empty() ? "/tmp" : folder, ::getpid());
  SLUICE_TRY_ASSIGN(const eval::Perplexity perplexity, SaveBase(text, path, {}, conversation));
  auto reader = OpenBase(path);
  std::filesystem::remove(path);
  if (!reader) return std::move(reader).error();
  return TemporaryBase{perplexity, *std::move(reader)};
}

Result<eval::BaseRunReader> OpenBase(const std::string& path) {
  SLUICE_TRY_ASSIGN(auto source, gguf::OpenFileSource(path));
  auto reader = eval::BaseRunReader::Open(std::move(source));
  if (!reader) return Annotate(std::move(reader).error(), path);
  return reader;
}

Result<eval::Divergence> Compare(const eval::BaseRun& text, eval::BaseRunReader& base,
                                 Conversation& conversation) {
  SLUICE_TRY(eval::CheckComparable(base.run(), text));
  eval::Divergence divergence;
  SLUICE_TRY(Predict(text.windows, "comparing", conversation,
                     [&](int64_t index, std::span<const float> logits) -> Status {
                       SLUICE_TRY_ASSIGN(const std::span<const float> row, base.Row(index));
                       divergence.Add(row, logits, text.windows.Target(index));
                       return {};
                     }));
  return divergence;
}

Result<std::unique_ptr<Conversation>> TextConversation(const OpenedModel& opened,
                                                       ConversationOptions options) {
  if (options.context_length == 0)
    options.context_length = std::min(kDefaultWindow, opened.model->config().context_length);
  return Conversation::Create(*opened.engine, opened.model, options);
}

Result<eval::Scoreboard> AskQuestions(const QuestionFlags& flags, Conversation& conversation) {
  SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(flags.file));
  auto questions = eval::ParseQuestions(text);
  if (!questions) return Annotate(std::move(questions).error(), flags.file);
  AnswerOptions options{
      .max_tokens = flags.max_tokens, .thinking = chat::Thinking::kOff, .interrupt = &Interrupted()};
  options.sampling.temperature = 0;
  options.sampling.seed = 0;
  eval::Scoreboard scores;
  ProgressLine progress("questions");
  for (const eval::Question& question : *questions) {
    conversation.SetMessages({chat::TextMessage("user", question.prompt)});
    SLUICE_TRY_ASSIGN(const Answer answer, conversation.Reply(options, {}));
    if (answer.generation.finish == session::FinishReason::kInterrupted)
      return Fail(ErrorCode::kInterrupted, "stopped");
    const bool right = eval::IsRight(question, answer.generation.text);
    scores.Add(question.kind, right);
    if (flags.show_wrong && !right) {
      Note(fmt::format("{}: {}\n  said  {}\n  right {}", question.kind, question.prompt,
                       answer.generation.text, question.answer));
    }
    progress.Show(static_cast<double>(scores.all().total), static_cast<double>(questions->size()));
  }
  return scores;
}

}  // namespace sluice::app
