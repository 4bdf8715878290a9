// sluice bench: how fast a model runs here, with the machine's roofs measured in the same run.
#include "sluice/bench.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "loading_progress.h"
#include "options.h"
#include "output.h"
#include "sluice/bench_attention.h"
#include "stats_report.h"

namespace sluice::app {

namespace {

struct BenchFlags {
  ModelFlags model;
  BenchOptions options;
  AttentionBenchOptions attention;
  bool attention_alone = false;
  ObserveFlags observe;
  bool json = false;
};

// --fusion without a level.
constexpr char kAllLevels[] = "levels";

Result<int> RunFusionBench(BenchFlags flags) {
  if (!flags.observe.trace.empty() || flags.observe.stats) {
    return Fail(ErrorCode::kInvalidArgument,
                "--stats and --trace are of one run: give --fusion the level to measure");
  }
  flags.model.fusion = runtime::FusionName(runtime::Fusion::kNone);  // room for the one that takes the most
  SLUICE_TRY_ASSIGN(flags.options.conversation, flags.model.Conversation());
  if (flags.options.conversation.context_length == 0)
    flags.options.conversation.context_length = BenchContext(flags.options);
  SLUICE_TRY_ASSIGN(const OpenedModel opened,
                    OpenModel(flags.model, flags.options.conversation, {.quiet = flags.json}));
  SLUICE_TRY_ASSIGN(
      const std::vector<FusionReport> reports,
      BenchFusion(*opened.engine, opened.model, flags.options, [] { return !Interrupted().load(); }));
  if (flags.json) {
    nlohmann::ordered_json json;
    json["model"] = opened.model->path();
    json["threads"] = opened.engine->threads();
    json["kernels"] = opened.engine->kernels();
    json["prompt_tokens"] = flags.options.prompt_tokens;
    json["depth"] = flags.options.depth;
    for (const FusionReport& report : reports) {
      json["levels"].push_back({{"fusion", runtime::FusionName(report.fusion)},
                                {"activation_bytes", report.activation_bytes},
                                {"prefill_seconds", report.prefill_seconds},
                                {"decode_seconds", report.decode_seconds}});
    }
    std::cout << json.dump(2) << "\n";
    return kExitOk;
  }
  std::printf("%-10s  %12s  %5s  %14s  %12s\n", "fused", "activations", "of it", "ms a prompt", "ms a token");
  const auto whole = static_cast<double>(reports.front().activation_bytes);
  for (const FusionReport& report : reports) {
    std::printf(
        "%-10s  %12s  %5.2f  %14.1f  %12.2f\n", std::string(runtime::FusionName(report.fusion)).c_str(),
        FormatBytes(report.activation_bytes).c_str(), static_cast<double>(report.activation_bytes) / whole,
        report.prefill_seconds * 1e3, report.decode_seconds * 1e3);
  }
  return kExitOk;
}

// A figure that is there only beside a reading of the roof.
nlohmann::ordered_json IfMeasured(bool roofs, double figure) {
  if (!roofs) return nullptr;
  return figure;
}

nlohmann::ordered_json AttentionJson(const AttentionReport& report, bool roofs) {
  nlohmann::ordered_json json;
  json["depth"] = report.depth;
  json["kv_k"] = kv::Name(report.k_type);
  json["kv_v"] = kv::Name(report.v_type);
  if (!report.left_out.empty()) {
    json["left_out"] = report.left_out;
    return json;
  }
  json["kv_bytes"] = report.kv_bytes;
  json["seconds"] = report.seconds();
  json["bytes_per_second"] = report.bytes_per_second();
  json["share_of_roof"] = IfMeasured(roofs, report.share_of_roof());
  json["scratch_bytes"] = report.scratch_bytes;
  json["score_bytes"] = report.score_bytes;
  json["stored_ratio"] = report.stored_ratio();
  json["prompt_rows"] = report.prompt_rows;
  json["prompt_seconds"] = report.prompt_seconds();
  json["prompt_stored_ratio"] = report.prompt_stored_ratio();
  for (const AttentionSample& sample : report.samples)
    json["samples"].push_back({sample.seconds, IfMeasured(roofs, sample.roof_bytes_per_second)});
  return json;
}

// The columns "stored": how many times as long it takes when all scores go through memory.
void PrintAttention(const std::vector<AttentionReport>& reports, bool roofs) {
  std::printf("%6s  %-10s  %10s  %8s  %7s  %7s  %10s  %10s  %6s  %13s  %6s\n", "depth", "kv", "KV bytes",
              "ms", "GB/s", "of roof", "scratch", "scores", "stored", "ms a prompt", "stored");
  for (const AttentionReport& report : reports) {
    const std::string types = fmt::format("{}/{}", kv::Name(report.k_type), kv::Name(report.v_type));
    std::printf("%6lld  %-10s  ", static_cast<long long>(report.depth), types.c_str());
    if (!report.left_out.empty()) {
      std::printf("%s\n", report.left_out.c_str());
      continue;
    }
    const std::string share = roofs ? fmt::format("{:.2f}", report.share_of_roof()) : "-";
    std::printf("%10s  %8.3f  %7.2f  %7s  %10s  %10s  %6.2f  %13.2f  %6.2f\n",
                FormatBytes(report.kv_bytes).c_str(), report.seconds() * 1e3, report.bytes_per_second() / 1e9,
                share.c_str(), FormatBytes(report.scratch_bytes).c_str(),
                FormatBytes(report.score_bytes).c_str(), report.stored_ratio(), report.prompt_seconds() * 1e3,
                report.prompt_stored_ratio());
  }
}

Result<int> RunAttentionBench(BenchFlags flags) {
  if (!flags.observe.trace.empty() || flags.observe.stats)
    return Fail(ErrorCode::kInvalidArgument,
                "--stats and --trace are of a whole model: not with --attention");
  flags.model.context_length = 64;  // nothing is read: the caches come from what the budget has left
  SLUICE_TRY_ASSIGN(const ConversationOptions conversation, flags.model.Conversation());
  SLUICE_TRY_ASSIGN(
      const OpenedModel opened,
      OpenModel(flags.model, conversation,
                {.quiet = flags.json, .reserve_bytes = flags.options.roofs ? kBenchReserveBytes : 0}));
  flags.attention.repetitions = flags.options.repetitions;
  flags.attention.roofs = flags.options.roofs;
  SLUICE_TRY_ASSIGN(
      const std::vector<AttentionReport> reports,
      BenchAttention(*opened.engine, *opened.model, flags.attention, [] { return !Interrupted().load(); }));
  if (flags.json) {
    nlohmann::ordered_json json;
    json["model"] = opened.model->path();
    json["threads"] = opened.engine->threads();
    json["kernels"] = opened.engine->kernels();
    for (const AttentionReport& report : reports)
      json["attention"].push_back(AttentionJson(report, flags.options.roofs));
    std::cout << json.dump(2) << "\n";
  } else {
    PrintAttention(reports, flags.options.roofs);
  }
  return kExitOk;
}

Result<int> RunBench(BenchFlags flags) {
  if (flags.attention_alone) return RunAttentionBench(std::move(flags));
  if (flags.model.fusion == kAllLevels) return RunFusionBench(std::move(flags));
  SLUICE_TRY_ASSIGN(flags.options.conversation, flags.model.Conversation());
  if (flags.options.conversation.context_length == 0)
    flags.options.conversation.context_length = BenchContext(flags.options);
  SLUICE_TRY_ASSIGN(const OpenedModel opened,
                    OpenModel(flags.model, flags.options.conversation,
                              {.quiet = flags.json,
                               .reserve_bytes = flags.options.roofs ? kBenchReserveBytes : 0,
                               .trace = flags.observe.trace}));
  LoadingProgress progress(*opened.model);
  flags.options.trace = opened.trace.get();
  flags.options.progress = [&](int64_t done, int64_t total) {
    progress.Show(done, total);
    return !Interrupted().load();
  };
  SLUICE_TRY_ASSIGN(const BenchReport report,
                    Bench(*opened.engine, opened.model, flags.options, [] { return !Interrupted().load(); }));
  progress.Clear();
  SLUICE_TRY(opened.FinishTrace());
  // The roof beside the samples says more than one of another day.
  const double roof = report.roof_bytes_per_second();
  const plan::Bound bound =
      roof > 0 ? FindBound(report.stats, roof) : BoundOnThisDevice(*opened.engine, report.stats);
  constexpr double kGiga = 1e9;
  if (flags.json) {
    nlohmann::ordered_json json;
    json["model"] = opened.model->path();
    json["threads"] = opened.engine->threads();
    json["kernels"] = opened.engine->kernels();
    json["weight_bytes_per_token"] = report.weight_bytes_per_token;
    json["multiplications_per_token"] = report.multiplications_per_token;
    json["prompt_tokens"] = flags.options.prompt_tokens;
    json["prefill_tokens_per_second"] = report.prefill_tokens_per_second();
    json["prefill_macs_per_second"] = report.prefill_macs_per_second();
    json["int8_macs_per_second"] = report.int8_macs_per_second();
    json["prefill_share_of_peak"] = report.prefill_share_of_peak();
    json["decode_tokens"] = flags.options.decode_tokens;
    json["depth"] = flags.options.depth;
    json["decode_tokens_per_second"] = report.decode_tokens_per_second();
    json["decode_bytes_per_second"] = report.decode_bytes_per_second();
    json["bytes_read_per_token"] = JsonOrNull(report.decoding.bytes_read_per_token());
    json["stall_seconds_per_token"] = JsonOrNull(report.decoding.stall_seconds_per_token());
    const weights::WeightStore& store = opened.model->parts().store();
    for (size_t i = 0; i < memory::kAccountCount; ++i)
      json["ledger"][std::string(memory::AccountName(static_cast<memory::Account>(i)))] =
          report.stats.ledger.used_bytes[i];
    json["residency"] = weights::ResidencyName(store.options().residency);
    json["io"] = store.io_backend();
    json["pinned_bytes"] = store.pinned_bytes();
    json["streamed_bytes"] = store.streamed_bytes();
    const bool roofs = flags.options.roofs;
    json["roof_bytes_per_second"] = IfMeasured(roofs, report.roof_bytes_per_second());
    json["decode_share_of_roof"] = IfMeasured(roofs, report.decode_share_of_roof());
    for (const BenchSample& sample : report.decode)
      json["decode_samples"].push_back(
          {sample.tokens_per_second, IfMeasured(roofs, sample.roof_bytes_per_second)});
    for (const BenchSample& sample : report.prefill)
      json["prefill_samples"].push_back(sample.tokens_per_second);
    if (flags.observe.stats) json["stats"] = StatsJson(report.stats, bound);
    std::cout << json.dump(2) << "\n";
    if (flags.observe.stats) PrintStats(report.stats, bound);
    return kExitOk;
  }
  std::printf("%s, %s a token, %.*s, %d threads, medians of %d\n", opened.model->config().name.c_str(),
              FormatBytes(report.weight_bytes_per_token).c_str(),
              static_cast<int>(opened.engine->kernels().size()), opened.engine->kernels().data(),
              opened.engine->threads(), flags.options.repetitions);
  if (!report.prefill.empty()) {
    std::printf("prefill %5lld tokens  %8.2f tok/s  %7.1f GMAC/s; int8 peak %.1f GMAC/s: %.2f of it\n",
                static_cast<long long>(flags.options.prompt_tokens), report.prefill_tokens_per_second(),
                report.prefill_macs_per_second() / kGiga, report.int8_macs_per_second() / kGiga,
                report.prefill_share_of_peak());
  }
  if (!report.decode.empty()) {
    std::printf("decode  %5lld tokens  %8.2f tok/s  %7.2f GB/s of weights",
                static_cast<long long>(flags.options.decode_tokens), report.decode_tokens_per_second(),
                report.decode_bytes_per_second() / kGiga);
    if (flags.options.roofs) {
      std::printf("; memory reads %.2f GB/s: %.2f of the roof", report.roof_bytes_per_second() / kGiga,
                  report.decode_share_of_roof());
    }
    if (report.decoding.bytes_read_per_token().value_or(0) > 0) {
      std::printf(", %.2f GB a token from storage", *report.decoding.bytes_read_per_token() / kGiga);
      if (const auto stall = report.decoding.stall_seconds_per_token())
        std::printf(", waited for %.0f ms", *stall * 1e3);
    }
    if (flags.options.depth > 0) std::printf(" (at depth %lld)", static_cast<long long>(flags.options.depth));
    std::printf("\n");
  }
  if (flags.observe.stats) PrintStats(report.stats, bound);
  return kExitOk;
}

}  // namespace

void AddBench(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("bench", "Speed, beside the machine's own roofs");
  auto flags = std::make_shared<BenchFlags>();
  flags->model.AddTo(*command);
  CLI::Option* const prompt =
      command->add_option("-p,--prompt-tokens", flags->options.prompt_tokens, "Tokens read in one go")
          ->capture_default_str();
  command->add_option("-n,--decode-tokens", flags->options.decode_tokens, "Tokens one by one")
      ->capture_default_str();
  command->add_option("-d,--depth", flags->options.depth, "Tokens held when decoding begins")
      ->capture_default_str();
  command->add_option("-r,--repetitions", flags->options.repetitions)->capture_default_str();
  command->get_option("--fusion")
      ->expected(0, 1)
      ->default_str(kAllLevels)
      ->description(
          "Without a value: memory and time with each level of fused operators; else the level to measure");
  CLI::Option* const attention =
      command
          ->add_option("--attention", flags->attention.depths,
                       "Attention alone, at these depths of context, for several KV types; -p is then 64")
          ->expected(0, 64)
          ->delimiter(',')
          ->default_str("512,2048,4096,32768");
  command->add_flag("!--no-roof", flags->options.roofs, "Don't measure the machine's own roofs beside");
  flags->observe.AddTo(*command);
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  command->final_callback([flags, prompt, attention, &action] {
    flags->attention_alone = attention->count() > 0;
    if (prompt->count() > 0) flags->attention.prompt_tokens = flags->options.prompt_tokens;
    action = [flags] { return RunBench(*flags); };
  });
}

}  // namespace sluice::app
