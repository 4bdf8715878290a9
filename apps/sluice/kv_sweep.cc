#include "kv_sweep.h"

#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "command.h"

namespace sluice::app {

namespace {

using kv::KvType;
using nlohmann::ordered_json;

struct Pair {
  KvType k, v;
  bool rotate = true;
};

// The first is what the others are compared with. Rotation makes no difference to types of 8 bits and more.
constexpr Pair kPairs[] = {
    {KvType::kF16, KvType::kF16},          {KvType::kF32, KvType::kF32},
    {KvType::kQ8_0, KvType::kQ8_0},        {KvType::kQ8_0, KvType::kQ5_0},
    {KvType::kQ8_0, KvType::kQ5_0, false}, {KvType::kQ8_0, KvType::kQ4_0},
    {KvType::kQ8_0, KvType::kQ4_0, false}, {KvType::kQ5_0, KvType::kQ5_0},
    {KvType::kQ5_0, KvType::kQ5_0, false}, {KvType::kQ4_0, KvType::kQ4_0},
    {KvType::kQ4_0, KvType::kQ4_0, false},
};

struct Row {
  Pair pair;
  int64_t bytes_per_token;
  std::optional<eval::Perplexity> perplexity;
  std::optional<eval::Divergence> divergence;  // none in the row that the others are compared with
  std::optional<eval::Scoreboard> questions;
};

int64_t BytesPerToken(const Model& model, const Pair& pair) {
  size_t bytes = 0;
  for (const model::LayerConfig& layer : model.config().layers) {
    bytes += static_cast<size_t>(layer.n_kv_heads) *
             (kv::KvRowBytes(pair.k, model.config().k_dim) + kv::KvRowBytes(pair.v, model.config().v_dim));
  }
  return static_cast<int64_t>(bytes);
}

// A text's part of a row. Without a base, what is predicted here becomes the base of the rows to come.
Status MeasureText(const TextFlags& flags, const OpenedModel& opened, const ConversationOptions& options,
                   std::optional<eval::BaseRunReader>& base, Row& row) {
  SLUICE_TRY_ASSIGN(const auto conversation, TextConversation(opened, options));
  SLUICE_TRY_ASSIGN(const eval::BaseRun text, flags.file.empty()
                                                  ? PlanTextOf(base->run(), *opened.model)
                                                  : PlanText(flags, *opened.model, *conversation));
  if (base) {
    SLUICE_TRY_ASSIGN(row.divergence, Compare(text, *base, *conversation));
    row.perplexity = row.divergence->perplexity();
  } else {
    SLUICE_TRY_ASSIGN(TemporaryBase made, SaveTemporaryBase(text, *conversation));
    row.perplexity = made.perplexity;
    base.emplace(std::move(made.reader));
  }
  return {};
}

Result<Row> Measure(const KvSweepFlags& flags, const OpenedModel& opened, ConversationOptions options,
                    const Pair& pair, std::optional<eval::BaseRunReader>& base) {
  options.k_type = pair.k;
  options.v_type = pair.v;
  options.rotate = pair.rotate;
  Row row{.pair = pair, .bytes_per_token = BytesPerToken(*opened.model, pair)};
  if (!flags.text.file.empty() || base) SLUICE_TRY(MeasureText(flags.text, opened, options, base, row));
  if (!flags.questions.file.empty()) {
    SLUICE_TRY_ASSIGN(const auto conversation, Conversation::Create(*opened.engine, opened.model, options));
    SLUICE_TRY_ASSIGN(row.questions, AskQuestions(flags.questions, *conversation));
  }
  return row;
}

std::string Rotation(const Pair& pair) {
  if (!kv::Rotated(pair.k) && !kv::Rotated(pair.v)) return "";
  return pair.rotate ? "yes" : "no";
}

double Rise(const Row& row, const Row& first) {
  return row.perplexity->value() / first.perplexity->value() - 1;
}

// "reading −2, sum +1": right answers by kind, where they are not those of the first row.
std::string ChangedKinds(const Row& row, const Row& first) {
  std::string text;
  for (size_t i = 0; i < row.questions->kinds().size(); ++i) {
    const eval::KindScore& kind = row.questions->kinds()[i];
    const int64_t change = kind.score.right - first.questions->kinds()[i].score.right;
    if (change != 0) text += fmt::format("{}{} {:+}", text.empty() ? "" : ", ", kind.kind, change);
  }
  return text;
}

void PrintHead(const KvSweepFlags& flags, bool text) {
  std::printf("%-6s %-6s %-7s %11s", "keys", "values", "rotated", "bytes/token");
  if (text) std::printf("  %10s %8s  %9s %9s %9s", "perplexity", "rise", "KL", "KL 99 %", "same top");
  if (!flags.questions.file.empty()) std::printf("  %9s  %s", "questions", "by kind");
  std::printf("\n");
}

void PrintRow(const Row& row, const Row& first) {
  std::printf("%-6s %-6s %-7s %11lld", std::string(kv::Name(row.pair.k)).c_str(),
              std::string(kv::Name(row.pair.v)).c_str(), Rotation(row.pair).c_str(),
              static_cast<long long>(row.bytes_per_token));
  if (row.perplexity) std::printf("  %10.4f %+7.3f%%", row.perplexity->value(), 100 * Rise(row, first));
  if (row.divergence) {
    std::printf("  %9.2e %9.2e %7.2f %%", row.divergence->kl().mean(), row.divergence->Quantile(0.99),
                100 * row.divergence->same_top().share());
  } else if (row.perplexity) {
    std::printf("%s", fmt::format("  {0:>9} {0:>9} {0:>9}", "–").c_str());
  }
  if (row.questions)
    std::printf("  %7.1f %%  %s", 100 * row.questions->all().share(), ChangedKinds(row, first).c_str());
  std::printf("\n");
  std::fflush(stdout);  // rows take a while each
}

ordered_json RowJson(const Row& row, const Row& first) {
  ordered_json json{{"k_type", kv::Name(row.pair.k)},
                    {"v_type", kv::Name(row.pair.v)},
                    {"rotated", Rotation(row.pair) == "yes"},
                    {"bytes_per_token", row.bytes_per_token}};
  if (row.perplexity) {
    json["perplexity"] = row.perplexity->value();
    json["rise"] = Rise(row, first);
  }
  if (row.divergence) {
    json["kl"] = row.divergence->kl().mean();
    json["kl_quantile_99"] = row.divergence->Quantile(0.99);
    json["same_top"] = row.divergence->same_top().share();
  }
  if (row.questions) {
    json["questions"] = {{"right", row.questions->all().right}, {"total", row.questions->all().total}};
    for (const eval::KindScore& kind : row.questions->kinds())
      json["kinds"][kind.kind] = {{"right", kind.score.right}, {"total", kind.score.total}};
  }
  return json;
}

}  // namespace

Result<int> SweepKvTypes(const KvSweepFlags& flags, const OpenedModel& opened,
                         const ConversationOptions& options, std::optional<eval::BaseRunReader> base) {
  std::vector<Row> rows;
  ordered_json json = ordered_json::array();
  if (!flags.json) PrintHead(flags, !flags.text.file.empty() || base.has_value());
  for (const Pair& pair : kPairs) {
    SLUICE_TRY_ASSIGN(Row row, Measure(flags, opened, options, pair, base));
    rows.push_back(std::move(row));
    if (flags.json) {
      json.push_back(RowJson(rows.back(), rows.front()));
    } else {
      PrintRow(rows.back(), rows.front());
    }
  }
  if (flags.json) std::cout << ordered_json{{"kv_sweep", json}}.dump(2) << "\n";
  return kExitOk;
}

}  // namespace sluice::app
