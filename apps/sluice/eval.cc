// sluice eval: how good a model is, as numbers with their intervals: perplexity on a text, accuracy on a question set;
// or how good it is with each pair of KV types.
#include "sluice/eval.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "kv_sweep.h"
#include "measures.h"
#include "options.h"

namespace sluice::app {

namespace {

using nlohmann::ordered_json;

struct EvalFlags {
  ModelFlags model;
  std::string text_file;
  QuestionFlags questions;
  bool json = false, kv_sweep = false;
};

// Prints the measure unless it goes out as JSON.
ordered_json Show(const TextMeasure& measure, bool quiet) {
  const eval::Perplexity& perplexity = measure.perplexity;
  const eval::Interval interval = perplexity.Confidence95();
  if (!quiet) {
    std::printf("perplexity %.4f  (95 %%: %.4f to %.4f)  %lld tokens in windows of %lld\n", perplexity.value(),
                interval.low, interval.high, static_cast<long long>(perplexity.tokens()),
                static_cast<long long>(measure.window));
    if (perplexity.ruled_out() > 0)
      std::printf("%lld tokens were ruled out by the model\n", static_cast<long long>(perplexity.ruled_out()));
  }
  return {{"perplexity", perplexity.value()}, {"low", interval.low},       {"high", interval.high},
          {"tokens", perplexity.tokens()},    {"window", measure.window}, {"mean_nll", perplexity.nats().mean()}};
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

ordered_json Show(const eval::Scoreboard& scores, bool quiet) {
  ordered_json json{{"all", ScoreJson(scores.all())}, {"kinds", ordered_json::object()}};
  for (const eval::KindScore& kind : scores.kinds()) {
    json["kinds"][kind.kind] = ScoreJson(kind.score);
    if (!quiet) PrintScore(kind.kind, kind.score);
  }
  if (!quiet) PrintScore("all", scores.all());
  return json;
}

Result<int> Eval(const EvalFlags& flags) {
  if (flags.text_file.empty() && flags.questions.file.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "nothing to measure: give --ppl TEXT or --questions FILE");
  }
  SLUICE_TRY_ASSIGN(ConversationOptions options, flags.model.Conversation());
  SLUICE_TRY_ASSIGN(const OpenedModel opened, OpenModel(flags.model, options, {.quiet = flags.json}));
  if (flags.kv_sweep) {
    return SweepKvTypes({.text_file = flags.text_file, .questions = flags.questions, .json = flags.json},
                        *opened.engine, opened.model, options);
  }
  ordered_json json;
  if (!flags.text_file.empty()) {
    ConversationOptions windowed = options;
    if (windowed.context_length == 0) windowed.context_length = DefaultWindow(*opened.model);
    SLUICE_TRY_ASSIGN(const auto conversation, Conversation::Create(*opened.engine, opened.model, windowed));
    SLUICE_TRY_ASSIGN(const TextMeasure measure, MeasurePerplexity(*opened.model, flags.text_file, *conversation));
    json["perplexity"] = Show(measure, flags.json);
  }
  if (!flags.questions.file.empty()) {
    SLUICE_TRY_ASSIGN(const auto conversation, Conversation::Create(*opened.engine, opened.model, options));
    SLUICE_TRY_ASSIGN(const eval::Scoreboard scores, AskQuestions(flags.questions, *conversation));
    json["questions"] = Show(scores, flags.json);
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
  command->add_option("--questions", flags->questions.file, "JSON lines with kind, prompt, answer, accept");
  command->add_option("-n,--max-tokens", flags->questions.max_tokens, "Most tokens of an answer")->capture_default_str();
  command->add_flag("--wrong", flags->questions.show_wrong, "Show the wrong answers");
  command->add_flag("--kv-sweep", flags->kv_sweep, "Measure pairs of KV types side by side, low-bit ones also unrotated");
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  command->final_callback([flags, &action] { action = [flags] { return Eval(*flags); }; });
}

}  // namespace sluice::app
