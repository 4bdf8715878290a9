#include "quantize/importance_gatherer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "gguf/writer.h"

namespace sluice::quantize {

namespace {

constexpr int64_t kColumnsAtOnce = 256;

}  // namespace

Result<std::unique_ptr<ImportanceGatherer>> ImportanceGatherer::Create(const runtime::Context& context,
                                                                       const model::Model& model,
                                                                       int64_t chunk) {
  const model::Config& config = model.config();
  const weights::Matrix& positions = model.weights().position_embedding;
  if (chunk < 1 || chunk > (positions ? positions.rows : config.context_length)) {
    return Fail(ErrorCode::kInvalidArgument, "chunks of {} tokens; expected 1 to {}", chunk,
                positions ? positions.rows : config.context_length);
  }
  std::unique_ptr<ImportanceGatherer> gatherer(new ImportanceGatherer(context, model, chunk));
  SLUICE_TRY_ASSIGN(gatherer->cache_, kv::Cache::Create({.layers = model::CacheLayers(config),
                                                         .k_type = kv::KvType::kF16,
                                                         .v_type = kv::KvType::kF16,
                                                         .context_length = chunk,
                                                         .max_batch = chunk},
                                                        *context.ledger));
  SLUICE_TRY_ASSIGN(gatherer->forward_,
                    model::Forward::Create(
                        context, config, model.weights(), model.store(),
                        {.max_batch = chunk, .context_length = chunk, .fusion = runtime::Fusion::kNone}));
  gatherer->forward_->set_observer(
      [self = gatherer.get()](model::Stage stage, int layer, const float* rows, int64_t n_rows,
                              int64_t width) { self->Observe(stage, layer, rows, n_rows, width); });
  for (const model::LayerWeights& layer : model.weights().layers) {
    for (const ops::Linear* linear :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      if (!*linear) continue;
      Sums& sums = gatherer->sums_[std::string(linear->weight.tensor->name)];
      sums.squares.resize(static_cast<size_t>(linear->weight.columns));
    }
  }
  return gatherer;
}

Status ImportanceGatherer::Read(std::span<const int32_t> ids, const model::GoOn& go_on) {
  SLUICE_CHECK(!ids.empty() && static_cast<int64_t>(ids.size()) <= chunk_);
  kv::Sequence sequence(*cache_);
  rows_.clear();
  for (const int32_t id : ids) rows_.push_back({id, &sequence, false});
  SLUICE_TRY(forward_->Run(rows_, *cache_, {}, go_on));
  tokens_ += static_cast<int64_t>(ids.size());
  for (const auto& [name, sums] : sums_) {
    const bool finite = std::ranges::all_of(sums.squares, [](double x) { return std::isfinite(x); });
    if (!finite)
      return Fail(ErrorCode::kCorrupt, "an input of {} is NaN or infinite: the model computes nonsense",
                  name);
  }
  return {};
}

void ImportanceGatherer::Observe(model::Stage stage, int layer, const float* rows, int64_t n_rows,
                                 int64_t width) {
  if (layer < 0) return;
  const model::LayerWeights& w = model_.weights().layers[static_cast<size_t>(layer)];
  std::array<const ops::Linear*, 3> met{};
  switch (stage) {
    case model::Stage::kAttentionInput:
      met = {&w.q, &w.k, &w.v};
      break;
    case model::Stage::kAttended:
      met = {&w.o};
      break;
    case model::Stage::kFfnInput:
      met = {&w.gate, &w.up};
      break;
    case model::Stage::kFfnActivated:
      met = {&w.down};
      break;
    default:
      return;
  }
  // Matrices that the file holds as one tensor count once.
  const gguf::Tensor* before = nullptr;
  for (const ops::Linear* linear : met) {
    if (linear == nullptr || !*linear || linear->weight.tensor == before) continue;
    before = linear->weight.tensor;
    Add(*linear, rows, n_rows, width);
  }
}

void ImportanceGatherer::Add(const ops::Linear& linear, const float* rows, int64_t n_rows, int64_t width) {
  Sums& sums = sums_.find(linear.weight.tensor->name)->second;
  sums.count += static_cast<double>(n_rows);
  context_.pool->ParallelFor(width, kColumnsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = 0; row < n_rows; ++row) {
      for (int64_t c = begin; c < end; ++c) {
        const double x = rows[row * width + c];
        sums.squares[static_cast<size_t>(c)] += x * x;
      }
    }
  });
}

Status ImportanceGatherer::Merge(const ImportanceFile& file) {
  for (const std::string& name : file.tensors()) {
    const auto found = sums_.find(name);
    if (found == sums_.end()) {
      return Fail(ErrorCode::kInvalidArgument,
                  "{} has importance for {}, which this model has not: it is of another model", file.origin(),
                  name);
    }
    SLUICE_TRY_ASSIGN(const ImportanceFile::Sums theirs, file.LoadSums(name));
    Sums& sums = found->second;
    if (theirs.squares.size() != sums.squares.size() || theirs.counts.size() != 1) {
      return Fail(ErrorCode::kInvalidArgument,
                  "{}: {} has {} columns and {} matrices; this model's has {} and 1", file.origin(), name,
                  theirs.squares.size(), theirs.counts.size(), sums.squares.size());
    }
    const auto odd = [](float x) { return !(std::isfinite(x) && x >= 0); };
    if (std::ranges::any_of(theirs.squares, odd) || odd(theirs.counts[0])) {
      return Fail(ErrorCode::kCorrupt, "{}: the sums of {} are not all finite numbers from 0 on",
                  file.origin(), name);
    }
    for (size_t c = 0; c < sums.squares.size(); ++c)
      sums.squares[c] += static_cast<double>(theirs.squares[c]);
    sums.count += static_cast<double>(theirs.counts[0]);
  }
  return {};
}

Status ImportanceGatherer::Write(std::string_view dataset, const gguf::SinkOpener& open) const {
  const bool any = std::ranges::any_of(sums_, [](const auto& entry) { return entry.second.count > 0; });
  if (!any) return Fail(ErrorCode::kInvalidArgument, "no text was read: there is no importance to write");
  gguf::Metadata metadata;
  metadata.SetString("general.type", "imatrix");
  metadata.SetStrings("imatrix.datasets", std::array{dataset});
  metadata.SetU32("imatrix.chunk_size", static_cast<uint32_t>(chunk_));
  metadata.SetU32("imatrix.chunk_count", static_cast<uint32_t>((tokens_ + chunk_ - 1) / chunk_));
  gguf::Writer writer(std::move(metadata));
  for (const auto& [name, sums] : sums_) {
    SLUICE_TRY(writer.AddTensor(name + std::string(ImportanceFile::kSumsName), formats::DType::kF32,
                                {sums.squares.size(), 1}));
    SLUICE_TRY(
        writer.AddTensor(name + std::string(ImportanceFile::kCountsName), formats::DType::kF32, {1, 1}));
  }
  SLUICE_TRY_ASSIGN(const uint64_t file_bytes, writer.FileBytes());
  SLUICE_TRY_ASSIGN(const auto sink, open(file_bytes));
  SLUICE_TRY(writer.Begin(*sink));
  for (const auto& [name, sums] : sums_) {
    const std::vector<float> squares(sums.squares.begin(), sums.squares.end());
    const auto count = static_cast<float>(sums.count);
    SLUICE_TRY(writer.WriteData(std::as_bytes(std::span(squares))));
    SLUICE_TRY(writer.WriteData(std::as_bytes(std::span(&count, 1))));
  }
  return writer.Finish();
}

}  // namespace sluice::quantize
