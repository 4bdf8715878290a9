// sluice run: one answer.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "answer_printer.h"
#include "command.h"
#include "glyphs.h"
#include "options.h"
#include "output.h"
#include "sluice/base64.h"
#include "sluice/terminal.h"
#include "sluice/usage.h"
#include "stats_report.h"

namespace sluice::app {

namespace {

constexpr uint64_t kMaxPromptBytes = kGiB;

struct RunFlags {
  ModelFlags model;
  SamplingFlags sampling;
  AnswerFlags answer;
  std::string prompt, prompt_base64, file, system;
  std::string snapshot;
  ObserveFlags observe;
  bool raw = false, json = false;
};

// The prompt from the flags, with a file and what is piped into the program behind it.
Result<std::string> ReadPrompt(const RunFlags& flags) {
  std::string prompt = flags.prompt;
  if (!flags.prompt_base64.empty()) {
    const auto decoded = DecodeBase64(flags.prompt_base64);
    if (!decoded) return Fail(ErrorCode::kInvalidArgument, "--prompt-base64 is not base64");
    prompt += *decoded;
  }
  const auto append = [&](const std::string& text) {
    if (!prompt.empty() && !text.empty()) prompt += "\n\n";
    prompt += text;
  };
  if (!flags.file.empty()) {
    SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(flags.file, kMaxPromptBytes));
    append(text);
  }
  if (!platform::IsTerminal(STDIN_FILENO)) {
    SLUICE_TRY_ASSIGN(const std::string text, platform::ReadToEnd(STDIN_FILENO, Interrupted(), kMaxPromptBytes));
    append(text);
  }
  if (prompt.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "there is no prompt: give one on the command line, with -f, or through a pipe");
  }
  return prompt;
}

void PrintJson(const Answer& answer, const Engine& engine, const plan::Plan& plan, const Stats& stats) {
  nlohmann::ordered_json json;
  json["text"] = answer.generation.text;
  json["text_base64"] = EncodeBase64(answer.generation.text);
  if (!answer.generation.reasoning.empty()) json["reasoning"] = answer.generation.reasoning;
  for (const chat::ToolCall& call : answer.generation.tool_calls)
    json["tool_calls"].push_back({{"name", call.name}, {"arguments", call.arguments}});
  json["prompt_tokens"] = answer.prompt_tokens;
  json["cached_tokens"] = answer.cached_tokens;
  json["generated_tokens"] = answer.generation.tokens;
  json["finish_reason"] = session::Name(answer.generation.finish);
  json["ttft_ms"] = answer.first_token_seconds * 1000;
  json["prefill_tokens_per_second"] = answer.prefill_tokens_per_second();
  json["decode_tokens_per_second"] = answer.decode_tokens_per_second();
  json["peak_rss_bytes"] = JsonOrNull(stats.process.peak_rss_bytes);
  json["threads"] = engine.threads();
  json["kernels"] = engine.kernels();
  json["kv_k_type"] = kv::Name(plan.kv.k_type);
  json["kv_v_type"] = kv::Name(plan.kv.v_type);
  json["seed"] = answer.seed;
  if (!answer.hint.empty()) json["hint"] = answer.hint;
  json["stats"] = StatsJson(stats, BoundOnThisDevice(engine, stats));
  std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

Result<int> Run(const RunFlags& flags) {
  SLUICE_TRY_ASSIGN(AnswerOptions options, flags.answer.Answer());
  SLUICE_TRY_ASSIGN(const ConversationOptions conversation_options, flags.model.Conversation());
  SLUICE_TRY_ASSIGN(const std::string prompt, ReadPrompt(flags));
  SLUICE_TRY_ASSIGN(const OpenedModel opened, OpenModel(flags.model, conversation_options,
                                                        {.quiet = flags.json, .trace = flags.observe.trace}));
  SLUICE_TRY_ASSIGN(options.sampling, flags.sampling.Over(opened.model->sampling()));
  SLUICE_TRY_ASSIGN(const auto conversation, Conversation::Create(*opened.engine, opened.model, conversation_options));
  if (!flags.snapshot.empty()) {
    options.snapshot = flags.snapshot;
    const Status loaded = conversation->Load(flags.snapshot);
    if (!loaded && loaded.error().code != ErrorCode::kNotFound && !flags.json)
      Note("the prompt is read anew: " + Printable(loaded.error().message));
  }
  opened.BeginTrace(*conversation);
  LoadingProgress progress(*opened.model, *conversation, "reading the prompt");
  Watch(options, progress);

  AnswerPrinter printer;
  session::EventSink sink;
  if (!flags.json) sink = [&](const chat::OutputEvent& event) { printer.Print(event); };
  Answer answer;
  if (flags.raw) {
    SLUICE_TRY_ASSIGN(answer, conversation->Complete(prompt, options, sink));
  } else {
    if (!flags.system.empty()) conversation->Add(chat::TextMessage("system", flags.system));
    conversation->Add(chat::TextMessage("user", prompt));
    SLUICE_TRY_ASSIGN(answer, conversation->Reply(options, sink));
  }
  const Stats stats = GatherStats(*opened.engine, *opened.model, answer.reading, answer.answering);
  if (flags.json) {
    PrintJson(answer, *opened.engine, opened.model->plan(), stats);
  } else {
    printer.Finish();
    if (!answer.hint.empty()) Note(answer.hint);
    Note(Dimmed(SpeedLine(answer, *opened.engine)));
  }
  if (flags.observe.stats) PrintStats(stats, BoundOnThisDevice(*opened.engine, stats));
  SLUICE_TRY(opened.FinishTrace());
  return answer.generation.finish == session::FinishReason::kInterrupted ? kExitInterrupted : kExitOk;
}

}  // namespace

void AddRun(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "One answer: sluice run MODEL \"What is the capital of France?\"");
  auto flags = std::make_shared<RunFlags>();
  flags->model.AddTo(*command);
  command->add_option("-p,--prompt,prompt", flags->prompt, "What to answer; piped input is appended");
  command->add_option("--prompt-base64", flags->prompt_base64, "The same, byte-exact through any charset");
  command->add_option("-f,--file", flags->file, "Append this file to the prompt");
  command->add_option("-s,--system", flags->system, "System message");
  command->add_option("--snapshot", flags->snapshot,
                      "Keep the model's state in this file, and begin with what it has: nothing is read twice");
  command->add_flag("--raw", flags->raw, "Continue the prompt as it is, without the chat template");
  flags->observe.AddTo(*command);
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  flags->answer.AddTo(*command);
  flags->sampling.AddTo(*command);
  command->final_callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace sluice::app
