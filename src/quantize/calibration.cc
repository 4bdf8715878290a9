#include "quantize/calibration.h"

#include <algorithm>

#include "kv/cache.h"
#include "weights/weight_store.h"

namespace sluice::quantize {

uint64_t Calibration::StreamBytes(const TextChunks& text, int64_t d_model) {
  uint64_t tokens = 0;
  for (const std::vector<int32_t>& chunk : text) tokens += chunk.size();
  return tokens * static_cast<uint64_t>(d_model) * sizeof(float);
}

Result<std::unique_ptr<Calibration>> Calibration::Create(const runtime::Context& context,
                                                         const gguf::GgufFile& file, TextChunks text) {
  std::unique_ptr<Calibration> calibration(new Calibration(context, std::move(text)));
  SLUICE_TRY_ASSIGN(const model::Config config, model::ReadConfig(file.metadata()));
  for (const std::vector<int32_t>& chunk : calibration->text_) {
    calibration->tokens_ += static_cast<int64_t>(chunk.size());
    calibration->longest_ = std::max(calibration->longest_, static_cast<int64_t>(chunk.size()));
  }
  if (calibration->tokens_ == 0)
    return Fail(ErrorCode::kInvalidArgument, "the calibration text has no tokens");
  calibration->d_model_ = config.d_model;
  const uint64_t bytes = StreamBytes(calibration->text_, config.d_model);
  SLUICE_TRY_ASSIGN(calibration->stream_memory_,
                    memory::Arena::Create(bytes, memory::Account::kActivations, *context.ledger));
  calibration->stream_ = reinterpret_cast<float*>(calibration->stream_memory_.Allocate(bytes).data());
  return calibration;
}

Calibration::~Calibration() = default;

Status Calibration::Run(const gguf::GgufFile& file, model::LayerRange layers, bool from_stream,
                        bool to_logits, const model::Observer& observer) {
  SLUICE_TRY_ASSIGN(model::Config config, model::ReadConfig(file.metadata()));
  SLUICE_TRY_ASSIGN(const model::Weights weights, model::BindWeights(config, file));
  SLUICE_TRY_ASSIGN(const auto store,
                    weights::WeightStore::Create(
                        context_, file, weights.schedule,
                        {.residency = weights::Residency::kMmap, .page_cache = weights::PageCache::kLeave}));
  SLUICE_TRY_ASSIGN(const auto cache, kv::Cache::Create({.layers = model::CacheLayers(config),
                                                         .k_type = kv::KvType::kF16,
                                                         .v_type = kv::KvType::kF16,
                                                         .context_length = longest_,
                                                         .max_batch = longest_},
                                                        *context_.ledger));
  SLUICE_TRY_ASSIGN(const auto forward, model::Forward::Create(context_, config, weights, *store,
                                                               {.max_batch = longest_,
                                                                .context_length = longest_,
                                                                .fusion = runtime::Fusion::kNone}));
  forward->set_observer(observer);
  std::vector<model::BatchRow> rows;
  float* stream = stream_;
  for (const std::vector<int32_t>& chunk : text_) {
    kv::Sequence sequence(*cache);
    rows.clear();
    for (size_t i = 0; i < chunk.size(); ++i) {
      rows.push_back({chunk[i], &sequence, to_logits,
                      from_stream ? stream + static_cast<int64_t>(i) * d_model_ : nullptr});
    }
    next_ = stream;
    SLUICE_TRY(forward->RunLayers(rows, layers, *cache, {}, go_on_));
    stream += static_cast<int64_t>(chunk.size()) * d_model_;
    if (go_on_ && !go_on_())
      return Fail(ErrorCode::kInterrupted, "stopped while reading the calibration text");
  }
  return {};
}

Status Calibration::Embed(const gguf::GgufFile& file) {
  return Run(file, {0, 0}, false, false,
             [this](model::Stage stage, int, const float* rows, int64_t n_rows, int64_t width) {
               if (stage == model::Stage::kEmbedding) std::copy(rows, rows + n_rows * width, next_);
             });
}

model::Observer Calibration::Watch(model::Stage stage, Hessian& hessian) const {
  return [this, stage, &hessian](model::Stage seen, int, const float* rows, int64_t n_rows, int64_t) {
    if (seen == stage) hessian.Add(context_, rows, n_rows);
  };
}

Status Calibration::Gather(const gguf::GgufFile& file, int layer, model::Stage stage, Hessian& hessian) {
  return Run(file, {layer, layer + 1}, true, false, Watch(stage, hessian));
}

Status Calibration::Advance(const gguf::GgufFile& file, int layer) {
  return Run(file, {layer, layer + 1}, true, false,
             [this](model::Stage stage, int, const float* rows, int64_t n_rows, int64_t width) {
               if (stage == model::Stage::kLayerOutput) std::copy(rows, rows + n_rows * width, next_);
             });
}

Status Calibration::GatherOutput(const gguf::GgufFile& file, Hessian& hessian) {
  SLUICE_TRY_ASSIGN(const model::Config config, model::ReadConfig(file.metadata()));
  const int layers = static_cast<int>(config.layers.size());
  return Run(file, {layers, layers}, true, true, Watch(model::Stage::kOutputInput, hessian));
}

}  // namespace sluice::quantize
