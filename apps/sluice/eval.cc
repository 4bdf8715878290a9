// sluice eval: how good a model is, as numbers with their intervals: perplexity on a text, accuracy on a question set.
#include "sluice/eval.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options.h"
#include "output.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

using nlohmann::ordered_json;

struct EvalFlags {
  ModelFlags model;
  std::string text_file, questions_file;
  bool json = false, wrong = false;
  int64_t max_tokens = 64;
};

constexpr int64_t kDefaultWindow = 512;

// The text in windows of the context's length, each read on its own behind a BOS where the model wants one; the tokens
// of each window's second half are scored, so that all have a past of at least half a window. A text shorter than one
// window is scored whole. (The first is how llama.cpp measures, so the figures compare.)
Result<ordered_json> MeasurePerplexity(const EvalFlags& flags, const OpenedModel& opened, Conversation& conversation) {
  SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(flags.text_file));
  SLUICE_TRY_ASSIGN(const std::vector<TokenId> ids, opened.model->EncodeText(text));
  const int64_t count = static_cast<int64_t>(ids.size());
  if (count < 2) return Fail(ErrorCode::kInvalidArgument, "{}: a text of {} tokens says nothing", flags.text_file, count);
  const int64_t window = std::min(conversation.context_length(), count);
  const int64_t first_scored = window == count ? 0 : window / 2;
  const text::Vocabulary& vocabulary = opened.model->tokenizer().vocabulary();

  eval::Perplexity perplexity;
  ProgressLine progress("perplexity");
  for (int64_t start = 0; start + window <= count; start += window) {
    std::vector<TokenId> part(ids.begin() + start, ids.begin() + start + window);
    if (vocabulary.add_bos()) part[0] = vocabulary.bos();
    conversation.session().Truncate(0);
    SLUICE_TRY(conversation.session().ReadAll(part, [&](size_t i, std::span<const float> logits) {
      const int64_t position = static_cast<int64_t>(i);
      if (position >= first_scored && position + 1 < window) perplexity.Add(logits, part[i + 1]);
    }));
    progress.Show(static_cast<double>(start + window), static_cast<double>(count));
    if (Interrupted().load()) return Fail(ErrorCode::kInterrupted, "stopped");
  }
  progress.Clear();
  const eval::Interval interval = perplexity.Confidence95();
  if (!flags.json) {
    std::printf("perplexity %.4f  (95 %%: %.4f to %.4f)  %lld tokens in windows of %lld\n", perplexity.value(),
                interval.low, interval.high, static_cast<long long>(perplexity.tokens()), static_cast<long long>(window));
    if (perplexity.ruled_out() > 0)
      std::printf("%lld tokens were ruled out by the model\n", static_cast<long long>(perplexity.ruled_out()));
  }
  return ordered_json{{"perplexity", perplexity.value()}, {"low", interval.low},   {"high", interval.high},
                      {"tokens", perplexity.tokens()},    {"window", window},      {"mean_nll", perplexity.nats().mean()}};
}

ordered_json ScoreJson(const eval::Score& score) {
  const eval::Interval interval = score.Confidence95();
  return {{"right", score.right}, {"total", score.total}, {"share", score.share()}, {"low", interval.low}, {"high", interval.high}};
}

void PrintScore(std::string_view name, const eval::Score& score) {
  const eval::Interval interval = score.Confidence95();
  std::printf("%-20.*s %5.1f %%  (95 %%: %.1f to %.1f)  %lld of %lld\n", static_cast<int>(name.size()), name.data(),
              100 * score.share(), 100 * interval.low, 100 * interval.high, static_cast<long long>(score.right),
              static_cast<long long>(score.total));
}

// Each question on its own, answered greedily.
Result<ordered_json> AskQuestions(const EvalFlags& flags, Conversation& conversation) {
  SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(flags.questions_file));
  auto questions = eval::ParseQuestions(text);
  if (!questions) return Annotate(std::move(questions).error(), flags.questions_file);
  AnswerOptions options{.max_tokens = flags.max_tokens, .thinking = chat::Thinking::kOff, .interrupt = &Interrupted()};
  options.sampling.temperature = 0;
  options.sampling.seed = 0;
  eval::Scoreboard scores;
  ProgressLine progress("questions");
  for (const eval::Question& question : *questions) {
    conversation.SetMessages({chat::TextMessage("user", question.prompt)});
    SLUICE_TRY_ASSIGN(const Answer answer, conversation.Reply(options, {}));
    if (answer.generation.finish == session::FinishReason::kInterrupted) return Fail(ErrorCode::kInterrupted, "stopped");
    const bool right = eval::IsRight(question, answer.generation.text);
    scores.Add(question.kind, right);
    if (flags.wrong && !right) {
      Note(fmt::format("{}: {}\n  said  {}\n  right {}", question.kind, question.prompt, answer.generation.text,
                       question.answer));
    }
    progress.Show(static_cast<double>(scores.all().total), static_cast<double>(questions->size()));
  }
  progress.Clear();
  ordered_json json{{"all", ScoreJson(scores.all())}, {"kinds", ordered_json::object()}};
  for (const eval::KindScore& kind : scores.kinds()) {
    json["kinds"][kind.kind] = ScoreJson(kind.score);
    if (!flags.json) PrintScore(kind.kind, kind.score);
  }
  if (!flags.json) PrintScore("all", scores.all());
  return json;
}

Result<int> Eval(const EvalFlags& flags) {
  if (flags.text_file.empty() && flags.questions_file.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "nothing to measure: give --ppl TEXT or --questions FILE");
  }
  SLUICE_TRY_ASSIGN(ConversationOptions options, flags.model.Conversation());
  SLUICE_TRY_ASSIGN(const OpenedModel opened, OpenModel(flags.model, flags.json));
  ordered_json json;
  if (!flags.text_file.empty()) {
    ConversationOptions windowed = options;
    if (windowed.context_length == 0)
      windowed.context_length = std::min(kDefaultWindow, opened.model->config().context_length);
    SLUICE_TRY_ASSIGN(const auto conversation, Conversation::Create(*opened.engine, opened.model, windowed));
    SLUICE_TRY_ASSIGN(json["perplexity"], MeasurePerplexity(flags, opened, *conversation));
  }
  if (!flags.questions_file.empty()) {
    SLUICE_TRY_ASSIGN(const auto conversation, Conversation::Create(*opened.engine, opened.model, options));
    SLUICE_TRY_ASSIGN(json["questions"], AskQuestions(flags, *conversation));
  }
  if (flags.json) std::cout << json.dump(2) << "\n";
  return kExitOk;
}

}  // namespace

void AddEval(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("eval", "Perplexity on a text, accuracy on a question set");
  auto flags = std::make_shared<EvalFlags>();
  flags->model.AddTo(*command);
  command->add_option("--ppl,--perplexity", flags->text_file, "Text to measure perplexity on (windows of 512 tokens, or -c)");
  command->add_option("--questions", flags->questions_file, "JSON lines with kind, prompt, answer, accept");
  command->add_option("-n,--max-tokens", flags->max_tokens, "Most tokens of an answer")->capture_default_str();
  command->add_flag("--wrong", flags->wrong, "Show the wrong answers");
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  command->final_callback([flags, &action] { action = [flags] { return Eval(*flags); }; });
}

}  // namespace sluice::app
