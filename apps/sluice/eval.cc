// sluice eval: how good a model is, as numbers with their intervals: perplexity on a text, divergence from a base,
// accuracy on a question set; or how good it is with each pair of KV types.
#include "sluice/eval.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.h"
#include "glyphs.h"
#include "kv_sweep.h"
#include "measures.h"
#include "options.h"
#include "output.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

using nlohmann::ordered_json;

struct EvalFlags {
  ModelFlags model;
  TextFlags text;
  std::string save_base, base, base_model;
  QuestionFlags questions;
  bool json = false, kv_sweep = false;
};

// Prints the measure unless it goes out as JSON.
ordered_json Show(const eval::Perplexity& perplexity, const eval::TextWindows& windows, bool quiet) {
  const eval::Interval interval = perplexity.Confidence95();
  if (!quiet) {
    std::printf("perplexity %.4f  (95 %%: %.4f to %.4f)  %lld tokens in windows of %lld\n", perplexity.value(),
                interval.low, interval.high, static_cast<long long>(perplexity.tokens()),
                static_cast<long long>(windows.window));
    if (perplexity.ruled_out() > 0)
      std::printf("%lld tokens were ruled out by the model\n", static_cast<long long>(perplexity.ruled_out()));
  }
  return {{"perplexity", perplexity.value()}, {"low", interval.low},       {"high", interval.high},
          {"tokens", perplexity.tokens()},    {"window", windows.window}, {"mean_nll", perplexity.nats().mean()}};
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

void Print(const eval::Divergence& divergence, const eval::BaseRun& base) {
  const eval::Interval kl = divergence.kl().Confidence95(), ratio = divergence.PerplexityRatioConfidence95();
  std::printf("against %s, %lld tokens in windows of %lld:\n", Printable(base.model).c_str(),
              static_cast<long long>(divergence.positions()), static_cast<long long>(base.windows.window));
  std::printf("KL divergence %.6f nats  (95 %%: %.6f to %.6f)  median %.6f, 99 %% below %.6f, most %.6f\n",
              divergence.kl().mean(), kl.low, kl.high, divergence.Quantile(0.5), divergence.Quantile(0.99),
              divergence.max());
  if (divergence.infinite() > 0) {
    std::printf("%lld tokens more, where the model rules out what the base does not\n",
                static_cast<long long>(divergence.infinite()));
  }
  PrintScore("same likeliest token", divergence.same_top());
  std::printf("perplexity %.4f, of the base %.4f, ratio %.5f  (95 %%: %.5f to %.5f)\n",
              divergence.perplexity().value(), divergence.base_perplexity().value(), divergence.PerplexityRatio(),
              ratio.low, ratio.high);
}

ordered_json Show(const eval::Divergence& divergence, const eval::BaseRun& base, bool quiet) {
  if (!quiet) Print(divergence, base);
  const eval::Interval kl = divergence.kl().Confidence95(), ratio = divergence.PerplexityRatioConfidence95();
  return {{"base", Printable(base.model)},
          {"tokens", divergence.positions()},
          {"window", base.windows.window},
          {"kl", {{"mean", divergence.kl().mean()},
                  {"low", kl.low},
                  {"high", kl.high},
                  {"median", divergence.Quantile(0.5)},
                  {"quantile_99", divergence.Quantile(0.99)},
                  {"max", divergence.max()},
                  {"infinite", divergence.infinite()}}},
          {"same_top", ScoreJson(divergence.same_top())},
          {"perplexity", divergence.perplexity().value()},
          {"base_perplexity", divergence.base_perplexity().value()},
          {"perplexity_ratio", {{"value", divergence.PerplexityRatio()}, {"low", ratio.low}, {"high", ratio.high}}}};
}

Status CheckFlags(const EvalFlags& flags) {
  const bool text = !flags.text.file.empty();
  const int bases = !flags.base.empty() + !flags.base_model.empty() + !flags.save_base.empty();
  if (!text && flags.base.empty() && flags.questions.file.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "nothing to measure: give --text FILE, --base RUN or --questions FILE");
  }
  if (bases > 1) {
    return Fail(ErrorCode::kInvalidArgument, "--base, --base-model and --save-base: only one of them at a time");
  }
  if (!text && (!flags.save_base.empty() || !flags.base_model.empty())) {
    return Fail(ErrorCode::kInvalidArgument, "{} needs a text: --text FILE",
                flags.save_base.empty() ? "--base-model" : "--save-base");
  }
  if (flags.kv_sweep && !flags.save_base.empty())
    return Fail(ErrorCode::kInvalidArgument, "--kv-sweep keeps no base run: leave out --save-base");
  return {};
}

// What --base-model predicts, as a base run. The model is closed again before another one is opened.
Result<eval::BaseRunReader> RunBaseModel(const EvalFlags& flags, const ConversationOptions& options) {
  ModelFlags of_base = flags.model;
  of_base.model = flags.base_model;
  SLUICE_TRY_ASSIGN(const OpenedModel opened, OpenModel(of_base, options, {.quiet = flags.json}));
  SLUICE_TRY_ASSIGN(const auto conversation, TextConversation(opened, options));
  SLUICE_TRY_ASSIGN(const eval::BaseRun text, PlanText(flags.text, *opened.model, *conversation));
  SLUICE_TRY_ASSIGN(TemporaryBase base, SaveTemporaryBase(text, *conversation));
  return std::move(base.reader);
}

// The base to compare with, if one was asked for.
Result<std::optional<eval::BaseRunReader>> Base(const EvalFlags& flags, const ConversationOptions& options) {
  std::optional<eval::BaseRunReader> base;
  if (!flags.base.empty()) {
    SLUICE_TRY_ASSIGN(base, OpenBase(flags.base));
  } else if (!flags.base_model.empty()) {
    SLUICE_TRY_ASSIGN(base, RunBaseModel(flags, options));
  }
  return base;
}

// Measures on a text: adds "perplexity" or "divergence".
Status MeasureText(const EvalFlags& flags, const OpenedModel& opened, const ConversationOptions& options,
                   eval::BaseRunReader* base, ordered_json& json) {
  SLUICE_TRY_ASSIGN(const auto conversation, TextConversation(opened, options));
  SLUICE_TRY_ASSIGN(const eval::BaseRun text, flags.text.file.empty()
                                                  ? PlanTextOf(base->run(), *opened.model)
                                                  : PlanText(flags.text, *opened.model, *conversation));
  if (base != nullptr) {
    SLUICE_TRY_ASSIGN(const eval::Divergence divergence, Compare(text, *base, *conversation));
    json["divergence"] = Show(divergence, base->run(), flags.json);
    return {};
  }
  std::vector<std::string> inputs = opened.model->parts().file().Paths();
  inputs.push_back(flags.text.file);
  SLUICE_TRY_ASSIGN(const eval::Perplexity perplexity,
                    flags.save_base.empty() ? MeasurePerplexity(text, *conversation)
                                            : SaveBase(text, flags.save_base, inputs, *conversation));
  json["perplexity"] = Show(perplexity, text.windows, flags.json);
  if (!flags.save_base.empty()) {
    Note(fmt::format("{}: {} predictions over {} tokens, {}", flags.save_base, text.windows.scored(),
                     text.vocabulary_size, FormatBytes(eval::BaseRunWriter::FileBytes(text))));
  }
  return {};
}

Result<int> Eval(const EvalFlags& flags) {
  SLUICE_TRY(CheckFlags(flags));
  SLUICE_TRY_ASSIGN(ConversationOptions options, flags.model.Conversation());
  SLUICE_TRY_ASSIGN(std::optional<eval::BaseRunReader> base, Base(flags, options));
  // A base run says how long the windows are, unless the user did.
  if (base && options.context_length == 0 && options.overflow == kv::Overflow::kStop)
    options.context_length = base->run().windows.window;
  SLUICE_TRY_ASSIGN(const OpenedModel opened, OpenModel(flags.model, options, {.quiet = flags.json}));
  if (flags.kv_sweep) {
    return SweepKvTypes({.text = flags.text, .questions = flags.questions, .json = flags.json}, opened, options,
                        std::move(base));
  }
  ordered_json json;
  if (!flags.text.file.empty() || base)
    SLUICE_TRY(MeasureText(flags, opened, options, base ? &*base : nullptr, json));
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
  CLI::App* command = app.add_subcommand("eval", "How good a model is: perplexity, divergence from a base, accuracy on a question set");
  auto flags = std::make_shared<EvalFlags>();
  flags->model.AddTo(*command);
  command->add_option("--text,--ppl,--perplexity", flags->text.file,
                      "Text to measure perplexity or divergence on (windows of 512 tokens, or -c)");
  command->add_option("--chunks", flags->text.chunks, "Read at most so many windows (default: all)");
  command->add_option("--save-base", flags->save_base, "Keep what is predicted in this file, for --base");
  command->add_option("--base,--kld", flags->base,
                      "Compare with what another model predicted: a file that --save-base made");
  command->add_option("--base-model", flags->base_model, "Compare with this model, which is run first");
  command->add_option("--questions", flags->questions.file, "JSON lines with kind, prompt, answer, accept");
  command->add_option("-n,--max-tokens", flags->questions.max_tokens, "Most tokens of an answer")->capture_default_str();
  command->add_flag("--wrong", flags->questions.show_wrong, "Show the wrong answers");
  command->add_flag("--kv-sweep", flags->kv_sweep, "Measure pairs of KV types side by side, low-bit ones also unrotated");
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  command->final_callback([flags, &action] { action = [flags] { return Eval(*flags); }; });
}

}  // namespace sluice::app
