#include "measures.h"

#include <algorithm>
#include <vector>

#include "output.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

constexpr int64_t kDefaultWindow = 512;

}  // namespace

Result<TextMeasure> MeasurePerplexity(const Model& model, const std::string& file,
                                      Conversation& conversation) {
  SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(file));
  SLUICE_TRY_ASSIGN(const std::vector<TokenId> ids, model.EncodeText(text));
  const int64_t count = static_cast<int64_t>(ids.size());
  if (count < 2)
    return Fail(ErrorCode::kInvalidArgument, "{}: a text of {} tokens says nothing", file, count);
  // Where the context overflows, the text is one window, however long it is.
  const bool endless = conversation.overflow() != kv::Overflow::kStop;
  const int64_t context = std::min(conversation.context_length(), count);
  const int64_t window = endless ? count : context;
  const int64_t first_scored = !endless && window == count ? 0 : context / 2;
  const text::Vocabulary& vocabulary = model.tokenizer().vocabulary();

  TextMeasure measure{.window = window};
  ProgressLine progress("perplexity");
  for (int64_t start = 0; start + window <= count; start += window) {
    std::vector<TokenId> part(ids.begin() + start, ids.begin() + start + window);
    if (vocabulary.add_bos()) part[0] = vocabulary.bos();
    conversation.session().Truncate(0);
    SLUICE_TRY(conversation.session().ReadAll(part, [&](size_t i, std::span<const float> logits) {
      const int64_t position = static_cast<int64_t>(i);
      if (position >= first_scored && position + 1 < window) measure.perplexity.Add(logits, part[i + 1]);
    }));
    progress.Show(static_cast<double>(start + window), static_cast<double>(count));
    if (Interrupted().load()) return Fail(ErrorCode::kInterrupted, "stopped");
  }
  return measure;
}

int64_t DefaultWindow(const Model& model) { return std::min(kDefaultWindow, model.config().context_length); }

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
