#include "stats_report.h"

#include <string>

#include "output.h"
#include "sluice/library.h"
#include "sluice/plan.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

using memory::Account;
using nlohmann::ordered_json;

constexpr std::string_view kUnknown = "unknown";

void PrintMemory(const Stats& stats) {
  const auto row = [](std::string_view name, std::string_view used, std::string_view planned,
                      std::string_view remark = "") {
    Note(fmt::format("  {:<18} {:>10} {:>10}{}{}", name, used, planned, remark.empty() ? "" : "   ", remark));
  };
  Note(fmt::format("{:<20} {:>10} {:>10}", "Memory", "used", "planned"));
  for (size_t i = 0; i < memory::kAccountCount; ++i) {
    const uint64_t used = stats.ledger.used_bytes[i];
    if (used > 0 || stats.planned[i] > 0)
      row(memory::AccountName(static_cast<Account>(i)), FormatBytes(used), FormatBytes(stats.planned[i]));
  }
  const auto beyond = stats.unaccounted_bytes();
  const uint64_t unaccounted = beyond && *beyond > 0 ? static_cast<uint64_t>(*beyond) : 0;
  std::string remark = "resident beyond these accounts";
  if (stats.residency == "mmap") remark += ", mapped weights among it";
  if (beyond && *beyond < 0)
    remark = fmt::format("{} of the accounts have not been touched yet",
                         FormatBytes(static_cast<uint64_t>(-*beyond)));
  row("unaccounted", beyond ? FormatBytes(unaccounted) : kUnknown, FormatBytes(stats.planned_unaccounted),
      remark);
  const uint64_t budget = stats.ledger.budget_bytes;
  row("total", FormatBytes(stats.ledger.total_bytes() + unaccounted), FormatBytes(stats.planned_total),
      budget == memory::Ledger::kUnlimited ? "no budget"
                                           : fmt::format("of a budget of {}", FormatBytes(budget)));
  Note(fmt::format("  process            {} resident, {} at most; {} PSS, {} virtual, {} swapped",
                   FormatBytesOr(stats.process.rss_bytes), FormatBytesOr(stats.process.peak_rss_bytes),
                   FormatBytesOr(stats.proportional_bytes), FormatBytesOr(stats.process.virtual_bytes),
                   FormatBytesOr(stats.process.swap_bytes)));
}

void PrintWork(const Stats& stats) {
  const auto row = [&](std::string_view name, auto&& figure) {
    Note(fmt::format("  {:<22} {:>12} {:>12}", name, figure(stats.reading), figure(stats.answering)));
  };
  const auto count = [](const std::optional<uint64_t>& n) {
    return n ? fmt::format("{}", *n) : std::string(kUnknown);
  };
  Note(fmt::format("{:<24} {:>12} {:>12}", "Work", "the prompt", "answering"));
  row("tokens", [](const WorkFigures& work) { return fmt::format("{}", work.tokens); });
  row("passes", [](const WorkFigures& work) { return fmt::format("{}", work.passes); });
  row("seconds", [](const WorkFigures& work) { return fmt::format("{:.3f}", work.seconds); });
  row("read a token", [](const WorkFigures& work) -> std::string {
    if (work.tokens == 0) return "–";
    const auto bytes = work.bytes_read_per_token();
    return bytes ? FormatBytes(static_cast<uint64_t>(*bytes)) : std::string(kUnknown);
  });
  row("stall a token", [&stats](const WorkFigures& work) -> std::string {
    if (work.tokens == 0) return "–";
    const auto seconds = work.stall_seconds_per_token();
    return seconds ? fmt::format("{:.2f} ms", *seconds / stats.workers * 1e3) : std::string(kUnknown);
  });
  row("page faults, minor", [&](const WorkFigures& work) { return count(work.activity.minor_faults); });
  row("page faults, major", [&](const WorkFigures& work) { return count(work.activity.major_faults); });
}

ordered_json WorkJson(const WorkFigures& work) {
  return {{"tokens", work.tokens},
          {"passes", work.passes},
          {"seconds", work.seconds},
          {"bytes_read", JsonOrNull(work.bytes_read)},
          {"bytes_read_per_token", JsonOrNull(work.bytes_read_per_token())},
          {"stall_seconds", JsonOrNull(work.stall_seconds)},
          {"stall_seconds_per_token", JsonOrNull(work.stall_seconds_per_token())},
          {"minor_faults", JsonOrNull(work.activity.minor_faults)},
          {"major_faults", JsonOrNull(work.activity.major_faults)},
          {"kernel_bytes_read", JsonOrNull(work.activity.storage_bytes)}};
}

}  // namespace

plan::Bound BoundOnThisDevice(const Engine& engine, const Stats& stats) {
  const std::string cache = platform::FindUserFolders(platform::Environment::FromProcess()).cache;
  const auto device = MeasuredDevice(engine, cache);
  return FindBound(stats, device ? std::optional(device->memory_bytes_per_second) : std::nullopt);
}

void PrintStats(const Stats& stats, const plan::Bound& bound) {
  PrintMemory(stats);
  PrintWork(stats);
  Note("threads " + stats.threads_origin);
  Note(bound.Line());
}

ordered_json StatsJson(const Stats& stats, const plan::Bound& bound) {
  ordered_json json{{"residency", stats.residency}, {"threads_origin", stats.threads_origin}};
  if (stats.ledger.budget_bytes != memory::Ledger::kUnlimited)
    json["budget_bytes"] = stats.ledger.budget_bytes;
  for (size_t i = 0; i < memory::kAccountCount; ++i) {
    json["accounts"][std::string(memory::AccountName(static_cast<Account>(i)))] = {
        {"used_bytes", stats.ledger.used_bytes[i]}, {"planned_bytes", stats.planned[i]}};
  }
  json["accounted_bytes"] = stats.ledger.total_bytes();
  json["unaccounted_bytes"] = JsonOrNull(stats.unaccounted_bytes());
  json["planned_unaccounted_bytes"] = stats.planned_unaccounted;
  json["planned_total_bytes"] = stats.planned_total;
  json["rss_bytes"] = JsonOrNull(stats.process.rss_bytes);
  json["peak_rss_bytes"] = JsonOrNull(stats.process.peak_rss_bytes);
  json["pss_bytes"] = JsonOrNull(stats.proportional_bytes);
  json["virtual_bytes"] = JsonOrNull(stats.process.virtual_bytes);
  json["swap_bytes"] = JsonOrNull(stats.process.swap_bytes);
  json["reading"] = WorkJson(stats.reading);
  json["answering"] = WorkJson(stats.answering);
  json["bound_by"] = {{"work", stats.answering.passes > 0 ? "answering" : "reading"},
                      {"storage", JsonOrNull(bound.storage)},
                      {"memory", JsonOrNull(bound.memory)},
                      {"compute", JsonOrNull(bound.compute)},
                      {"not_told_apart", bound.together},
                      {"why", bound.why},
                      {"line", bound.Line()}};
  return json;
}

}  // namespace sluice::app
