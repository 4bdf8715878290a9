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
  std::optional<TextMeasure> text;
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

Result<Row> Measure(const KvSweepFlags& flags, const Engine& engine,
                    const std::shared_ptr<const Model>& model, ConversationOptions options,
                    const Pair& pair) {
  options.k_type = pair.k;
  options.v_type = pair.v;
  options.rotate = pair.rotate;
  Row row{.pair = pair, .bytes_per_token = BytesPerToken(*model, pair)};
  if (!flags.text_file.empty()) {
    ConversationOptions windowed = options;
    if (windowed.context_length == 0) windowed.context_length = DefaultWindow(*model);
    SLUICE_TRY_ASSIGN(const auto conversation, Conversation::Create(engine, model, windowed));
    SLUICE_TRY_ASSIGN(row.text, MeasurePerplexity(*model, flags.text_file, *conversation));
  }
  if (!flags.questions.file.empty()) {
    SLUICE_TRY_ASSIGN(const auto conversation, Conversation::Create(engine, model, options));
    SLUICE_TRY_ASSIGN(row.questions, AskQuestions(flags.questions, *conversation));
  }
  return row;
}

std::string Rotation(const Pair& pair) {
  if (!kv::Rotated(pair.k) && !kv::Rotated(pair.v)) return "";
  return pair.rotate ? "yes" : "no";
}

double Rise(const Row& row, const Row& first) {
  return row.text->perplexity.value() / first.text->perplexity.value() - 1;
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

void PrintHead(const KvSweepFlags& flags) {
  std::printf("%-6s %-6s %-7s %11s", "keys", "values", "rotated", "bytes/token");
  if (!flags.text_file.empty()) std::printf("  %10s %8s", "perplexity", "rise");
  if (!flags.questions.file.empty()) std::printf("  %9s  %s", "questions", "by kind");
  std::printf("\n");
}

void PrintRow(const Row& row, const Row& first) {
  std::printf("%-6s %-6s %-7s %11lld", std::string(kv::Name(row.pair.k)).c_str(),
              std::string(kv::Name(row.pair.v)).c_str(), Rotation(row.pair).c_str(),
              static_cast<long long>(row.bytes_per_token));
  if (row.text) std::printf("  %10.4f %+7.3f%%", row.text->perplexity.value(), 100 * Rise(row, first));
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
  if (row.text) {
    json["perplexity"] = row.text->perplexity.value();
    json["rise"] = Rise(row, first);
  }
  if (row.questions) {
    json["questions"] = {{"right", row.questions->all().right}, {"total", row.questions->all().total}};
    for (const eval::KindScore& kind : row.questions->kinds())
      json["kinds"][kind.kind] = {{"right", kind.score.right}, {"total", kind.score.total}};
  }
  return json;
}

}  // namespace

Result<int> SweepKvTypes(const KvSweepFlags& flags, const Engine& engine, std::shared_ptr<const Model> model,
                         const ConversationOptions& options) {
  std::vector<Row> rows;
  ordered_json json = ordered_json::array();
  if (!flags.json) PrintHead(flags);
  for (const Pair& pair : kPairs) {
    SLUICE_TRY_ASSIGN(Row row, Measure(flags, engine, model, options, pair));
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
