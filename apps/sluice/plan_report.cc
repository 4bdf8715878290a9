#include "plan_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "glyphs.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

using kv::KvType;
using memory::Account;
using nlohmann::ordered_json;

constexpr double kGiga = 1e9;
constexpr KvType kShownKvTypes[] = {KvType::kF16, KvType::kQ8_0, KvType::kQ4_0};

template <typename... Args>
void Line(fmt::format_string<Args...> format, Args&&... args) {
  std::puts(fmt::format(format, std::forward<Args>(args)...).c_str());
}

bool Unlimited(const PlanReport& report) { return report.plan.budget_bytes == memory::Ledger::kUnlimited; }

// "0.23 tok/s", "12.4 tok/s"; "unknown" when nothing was measured.
std::string Rate(double tokens_per_second) {
  return tokens_per_second > 0 ? fmt::format("{:.3g} tok/s", tokens_per_second) : "speed unknown";
}

std::string Duration(double seconds) {
  return seconds < 120 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.3g} min", seconds / 60);
}

void PrintMemory(const PlanReport& report) {
  const plan::Plan& plan = report.plan;
  Line("\nWhere the memory goes");
  for (size_t i = 0; i < memory::kAccountCount; ++i) {
    if (plan.accounts[i] > 0)
      Line("  {:<18} {:>9}", memory::AccountName(static_cast<Account>(i)), FormatBytes(plan.accounts[i]));
  }
  if (plan.used_bytes > 0) Line("  {:<18} {:>9}", "in use already", FormatBytes(plan.used_bytes));
  Line("  {:<18} {:>9}   code, libraries, small things", "unaccounted", FormatBytes(plan.unaccounted_bytes));
  Line("  {:<18} {:>9}   of {}", "total", FormatBytes(plan.total_bytes()),
       Unlimited(report) ? "no budget" : FormatBytes(plan.budget_bytes));
  if (plan.streamed_bytes > 0)
    Line("  {} are read from storage for each token", FormatBytes(plan.streamed_bytes));
  if (!plan.bounded) Line("  mmap: weights are in the page cache, and no budget bounds it");
  const auto activations = [&](runtime::Fusion fusion) {
    return FormatBytes(report.facts.activation_bytes(plan.kv, report.request.threads, fusion));
  };
  Line("  activations with fused operators {}, without {}", activations(runtime::Fusion::kAll),
       activations(runtime::Fusion::kNone));
  for (const std::string& step : plan.steps) Line("  {}", step);
}

void PrintKv(const PlanReport& report) {
  Line(
      "\nKV cache: bytes a token = layers × heads × (key + value elements) × bytes each, in whole pages of "
      "{} tokens",
      kv::kPagePositions);
  for (const plan::KvLayers& layers : report.facts.kv_layers) {
    Line("  {} layers × {} heads × ({} + {}) × 2 = {} in f16{}", layers.count, layers.n_kv_heads,
         layers.k_dim, layers.v_dim,
         FormatBytes(static_cast<uint64_t>(layers.count) * static_cast<uint64_t>(layers.n_kv_heads) *
                     static_cast<uint64_t>(layers.k_dim + layers.v_dim) * 2),
         layers.window > 0 ? fmt::format(", of which {} tokens are seen", layers.window) : "");
  }
  if (Unlimited(report)) return;
  Line("  largest context{}      weights in memory   weights streamed",
       report.request.sequences > 1 ? fmt::format(" of {} conversations", report.request.sequences) : "");
  for (const KvType type : kShownKvTypes) {
    const auto largest = [&](bool stream) {
      const int64_t context = plan::LargestContext(report.facts, report.request, type, type, stream);
      return context > 0 ? std::to_string(context) : "none";
    };
    Line("    {:<16} {:>20} {:>18}", kv::Name(type), largest(false), largest(true));
  }
  Line("  the model was trained for {}", report.facts.context_length);
}

void PrintSpeed(const PlanReport& report) {
  const plan::Speed& speed = report.speed;
  Line("\nSpeed on {} ({})", report.device.name, report.device.source);
  Line("  memory reads {:.1f} GB/s, storage {}", report.device.memory_bytes_per_second / kGiga,
       report.device.storage.empty()
           ? "not measured (plan a file on it)"
           : fmt::format("{:.2f} GB/s", report.device.BestStorage().bytes_per_second / kGiga));
  if (speed.decode_tokens_per_second <= 0) return Line("  not known: streaming needs the speed of storage");
  Line("  {:<28} {}{}, bound by {}", "answering", Rate(speed.decode_tokens_per_second),
       speed.fluent() ? ", fluent" : "", speed.bound_by_storage() ? "storage" : "memory and computing");
  Line("  {:<28} {}", "reading the prompt", Rate(speed.prefill_tokens_per_second));
  Line("  {:<28} {}", "first token after 2000", Duration(speed.first_token_seconds));
  Line("  {:<28} {}", "an answer of 200 tokens", Duration(speed.answer_seconds));
}

void PrintTypes(const PlanReport& report) {
  Line("\n{:<8} {:>9} {:>8}  {:<9} {:>12}  {:>10} {:>8}", "Type", "size", "B/param", "weights", "answering",
       "perplexity", "KL");
  for (const TypeRow& row : report.types) {
    const plan::QualityLoss* loss = plan::FindQualityLoss(row.mix->name);
    Line("{:<8} {:>9} {:>8.3f}  {:<9} {:>12}  {:>10} {:>8}", row.mix->name, FormatBytes(row.bytes),
         row.bytes_per_parameter,
         !row.plan                      ? "no room"
         : row.plan->streamed_bytes > 0 ? "streamed"
                                        : "in memory",
         row.plan ? Rate(row.speed.decode_tokens_per_second) : "",
         loss == nullptr ? "" : fmt::format("+{:.1f} %", loss->perplexity_percent),
         loss == nullptr ? "" : fmt::format("{:.3f}", loss->kl_divergence));
  }
  Line("{}", plan::kQualitySource);
}

// Types that would reach a token a second here, the least loss first.
std::vector<const TypeRow*> FasterTypes(const PlanReport& report) {
  std::vector<const TypeRow*> faster;
  for (const TypeRow& row : report.types) {
    if (row.plan && row.speed.decode_tokens_per_second >= 1 &&
        plan::FindQualityLoss(row.mix->name) != nullptr)
      faster.push_back(&row);
  }
  std::ranges::stable_sort(
      faster, {}, [](const TypeRow* row) { return plan::FindQualityLoss(row->mix->name)->kl_divergence; });
  return faster;
}

void PrintAdvice(const PlanReport& report) {
  const double speed = report.speed.decode_tokens_per_second;
  if (speed <= 0 || speed >= 1) return;
  const std::vector<const TypeRow*> faster = FasterTypes(report);
  Line("\nLess than a token a second. Faster on this device:");
  for (size_t i = 0; i < std::min<size_t>(faster.size(), 3); ++i) {
    const TypeRow& row = *faster[i];
    Line("  {} ({}): {}, perplexity +{:.0f} % where it was measured", row.mix->name, FormatBytes(row.bytes),
         Rate(row.speed.decode_tokens_per_second), plan::FindQualityLoss(row.mix->name)->perplexity_percent);
  }
  if (report.plan.budget_bytes > report.plan.unaccounted_bytes) {
    Line("  a smaller model: up to {} parameters at Q4_K_M stay in memory",
         FormatCount(static_cast<uint64_t>(report.BytesPerParameterLeft() *
                                           static_cast<double>(report.facts.parameters) / 0.61)));
  }
}

void PrintStorage(const plan::StorageReport& report) {
  Line("\nStorage, as this file is read past the page cache: blocks, reads under way, GB/s");
  for (const plan::StorageRate& rate : report.table)
    Line("  {:<9} {:>9} {:>3} {:>7.2f}", io::BackendName(rate.backend), FormatBytes(rate.block_bytes),
         rate.depth, rate.bytes_per_second / 1e9);
  Line("best, over {}: {} {} × {}, {:.2f} GB/s", FormatBytes(report.read_bytes),
       io::BackendName(report.best.backend), FormatBytes(report.best.block_bytes), report.best.depth,
       report.best.bytes_per_second / 1e9);
}

ordered_json StorageJson(const plan::StorageReport& report) {
  const auto entry = [](const plan::StorageRate& rate) {
    return ordered_json{{"block_bytes", rate.block_bytes},
                        {"depth", rate.depth},
                        {"backend", io::BackendName(rate.backend)},
                        {"bytes_per_second", rate.bytes_per_second}};
  };
  ordered_json json{{"read_bytes", report.read_bytes}, {"best", entry(report.best)}};
  for (const plan::StorageRate& rate : report.table) json["table"].push_back(entry(rate));
  return json;
}

}  // namespace

double PlanReport::BytesPerParameterLeft() const {
  if (plan.budget_bytes == memory::Ledger::kUnlimited || facts.parameters == 0) return 0;
  const uint64_t taken =
      plan.total_bytes() - plan.bytes(Account::kWeightsPinned) - plan.bytes(Account::kWeightsStream);
  return static_cast<double>(plan.budget_bytes - std::min(plan.budget_bytes, taken)) /
         static_cast<double>(facts.parameters);
}

void PrintPlan(const PlanReport& report) {
  const plan::ModelFacts& facts = report.facts;
  Line("{}: {} parameters, {}, {:.2f} bits each", Printable(facts.name), FormatCount(facts.parameters),
       FormatBytes(facts.tensor_bytes),
       8 * static_cast<double>(facts.tensor_bytes) /
           static_cast<double>(std::max<uint64_t>(facts.parameters, 1)));
  Line("budget {}", report.budget_origin);
  Line("threads {}", report.threads_origin);
  PrintMemory(report);
  PrintKv(report);
  Line("\nActivations: {} at their peak, for {} tokens of a prompt at a time",
       FormatBytes(report.plan.bytes(Account::kActivations)), report.plan.kv.batch);
  if (!Unlimited(report)) {
    Line("Bytes per parameter that are left for weights: {:.3f} ({:.2f} bits); this file has {:.3f}",
         report.BytesPerParameterLeft(), 8 * report.BytesPerParameterLeft(),
         static_cast<double>(facts.tensor_bytes) /
             static_cast<double>(std::max<uint64_t>(facts.parameters, 1)));
  }
  PrintSpeed(report);
  if (report.storage) PrintStorage(*report.storage);
  if (report.list_types) PrintTypes(report);
  PrintAdvice(report);
}

ordered_json PlanJson(const PlanReport& report) {
  const plan::Plan& plan = report.plan;
  const plan::ModelFacts& facts = report.facts;
  ordered_json json{{"model", facts.name},
                    {"architecture", facts.architecture},
                    {"parameters", facts.parameters},
                    {"tensor_bytes", facts.tensor_bytes}};
  if (!Unlimited(report)) {
    json["budget_bytes"] = plan.budget_bytes;
    json["bytes_per_parameter_left"] = report.BytesPerParameterLeft();
  }
  json["residency"] = weights::ResidencyName(plan.store.residency);
  json["bounded"] = plan.bounded;
  for (size_t i = 0; i < memory::kAccountCount; ++i)
    json["accounts"][std::string(memory::AccountName(static_cast<Account>(i)))] = plan.accounts[i];
  json["unaccounted_bytes"] = plan.unaccounted_bytes;
  json["total_bytes"] = plan.total_bytes();
  json["streamed_bytes_per_token"] = plan.streamed_bytes;
  for (const runtime::Fusion fusion : runtime::kFusionLevels)
    json["activation_bytes"][std::string(runtime::FusionName(fusion))] =
        report.facts.activation_bytes(plan.kv, report.request.threads, fusion);
  json["threads"] = report.request.threads;
  json["threads_origin"] = report.threads_origin;
  json["context_length"] = plan.kv.context_length;
  json["batch"] = plan.kv.batch;
  json["k_type"] = kv::Name(plan.kv.k_type);
  json["v_type"] = kv::Name(plan.kv.v_type);
  json["steps"] = plan.steps;
  if (!Unlimited(report)) {
    for (const KvType type : kShownKvTypes) {
      json["largest_context"][std::string(kv::Name(type))] = {
          {"in_memory", plan::LargestContext(facts, report.request, type, type, false)},
          {"streamed", plan::LargestContext(facts, report.request, type, type, true)}};
    }
  }
  json["device"] = {{"name", report.device.name},
                    {"source", report.device.source},
                    {"memory_bytes_per_second", report.device.memory_bytes_per_second},
                    {"storage_bytes_per_second", report.device.BestStorage().bytes_per_second}};
  json["speed"] = {{"decode_tokens_per_second", report.speed.decode_tokens_per_second},
                   {"prefill_tokens_per_second", report.speed.prefill_tokens_per_second},
                   {"first_token_seconds", report.speed.first_token_seconds},
                   {"answer_seconds", report.speed.answer_seconds},
                   {"fluent", report.speed.fluent()},
                   {"bound_by_storage", report.speed.bound_by_storage()}};
  if (report.storage) json["storage"] = StorageJson(*report.storage);
  if (!report.list_types) return json;
  for (const TypeRow& row : report.types) {
    ordered_json type{{"type", row.mix->name},
                      {"bytes", row.bytes},
                      {"bytes_per_parameter", row.bytes_per_parameter},
                      {"fits", row.plan.has_value()}};
    if (row.plan) {
      type["streamed_bytes_per_token"] = row.plan->streamed_bytes;
      type["decode_tokens_per_second"] = row.speed.decode_tokens_per_second;
    }
    if (const plan::QualityLoss* loss = plan::FindQualityLoss(row.mix->name))
      type["quality"] = {{"perplexity_percent", loss->perplexity_percent},
                         {"kl_divergence", loss->kl_divergence}};
    json["types"].push_back(std::move(type));
  }
  json["quality_source"] = plan::kQualitySource;
  return json;
}

}  // namespace sluice::app
