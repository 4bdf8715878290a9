#include "model/facts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "base/units.h"
#include "model/forward.h"
#include "model/weights.h"
#include "weights/weight_store.h"

namespace sluice::model {

namespace {

// A tensor directory and what a model makes of it, as BindWeights does it, but without reading a byte of the tensors.
struct Places {
  std::vector<gguf::Tensor> tensors;  // that the matrices point to
  Weights weights;                    // matrices and schedule only
};

class PlaceFinder {
 public:
  PlaceFinder(const Config& config, std::span<const gguf::Tensor> tensors)
      : config_(config), places_(std::make_shared<Places>()) {
    places_->tensors.assign(tensors.begin(), tensors.end());
    for (const gguf::Tensor& tensor : places_->tensors) by_name_.emplace(tensor.name, &tensor);
  }

  Result<std::shared_ptr<const Places>> Find() {
    Weights& weights = places_->weights;
    SLUICE_TRY_ASSIGN(weights.token_embedding, Matrix("token_embd.weight"));
    if (config_.recipe->position_embedding) {
      SLUICE_TRY_ASSIGN(weights.position_embedding, Matrix("position_embd.weight"));
    }
    weights.output.weight = weights.token_embedding;
    if (by_name_.contains("output.weight")) {
      SLUICE_TRY_ASSIGN(weights.output.weight, Matrix("output.weight"));
    }
    weights.layers.resize(config_.layers.size());
    for (size_t i = 0; i < config_.layers.size(); ++i) {
      LayerWeights& w = weights.layers[i];
      SLUICE_TRY(FindLayer(fmt::format("blk.{}.", i), config_.layers[i], w));
      ScheduleLayer(w, static_cast<int>(i), weights.schedule);
    }
    ScheduleOutput(weights.output, config_.layers.size(), weights.schedule);
    return std::shared_ptr<const Places>(places_);
  }

 private:
  Result<weights::Matrix> Matrix(const std::string& name) const {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return Fail(ErrorCode::kNotFound, "tensor {} is missing", name);
    const gguf::Tensor& tensor = *found->second;
    if (tensor.traits == nullptr) {
      return Fail(ErrorCode::kUnsupported, "tensor {} has type {}, which is unknown", name, tensor.type_id);
    }
    return weights::Matrix{.dtype = tensor.traits->dtype,
                           .rows = static_cast<int64_t>(tensor.rows()),
                           .columns = static_cast<int64_t>(tensor.columns()),
                           .tensor = &tensor};
  }

  // Rows [first, first + rows) of a tensor that holds several matrices.
  static Result<weights::Matrix> Part(const weights::Matrix& whole, int64_t first, int64_t rows) {
    if (whole.rows < first + rows) {
      return Fail(ErrorCode::kCorrupt, "tensor {} has {} rows; expected {} or more", whole.tensor->name, whole.rows,
                  first + rows);
    }
    weights::Matrix part = whole;
    part.first_row = first;
    part.rows = rows;
    return part;
  }

  Status FindLayer(const std::string& blk, const LayerConfig& layer, LayerWeights& w) const {
    const int64_t q = int64_t{layer.n_heads} * config_.k_dim;
    const int64_t k = int64_t{layer.n_kv_heads} * config_.k_dim;
    const int64_t v = int64_t{layer.n_kv_heads} * config_.v_dim;
    if (by_name_.contains(blk + "attn_qkv.weight")) {
      SLUICE_TRY_ASSIGN(const weights::Matrix qkv, Matrix(blk + "attn_qkv.weight"));
      SLUICE_TRY_ASSIGN(w.q.weight, Part(qkv, 0, q));
      SLUICE_TRY_ASSIGN(w.k.weight, Part(qkv, q, k));
      SLUICE_TRY_ASSIGN(w.v.weight, Part(qkv, q + k, v));
    } else {
      SLUICE_TRY_ASSIGN(w.q.weight, Matrix(blk + "attn_q.weight"));
      SLUICE_TRY_ASSIGN(w.k.weight, Matrix(blk + "attn_k.weight"));
      SLUICE_TRY_ASSIGN(w.v.weight, Matrix(blk + "attn_v.weight"));
    }
    SLUICE_TRY_ASSIGN(w.o.weight, Matrix(blk + "attn_output.weight"));
    SLUICE_TRY_ASSIGN(const weights::Matrix up, Matrix(blk + "ffn_up.weight"));
    w.up.weight = up;
    if (config_.recipe->gated && by_name_.contains(blk + "ffn_gate.weight")) {
      SLUICE_TRY_ASSIGN(w.gate.weight, Matrix(blk + "ffn_gate.weight"));
    } else if (config_.recipe->gated) {
      SLUICE_TRY_ASSIGN(w.gate.weight, Part(up, 0, layer.d_ff));
      SLUICE_TRY_ASSIGN(w.up.weight, Part(up, layer.d_ff, layer.d_ff));
    }
    SLUICE_TRY_ASSIGN(w.down.weight, Matrix(blk + "ffn_down.weight"));
    return {};
  }

  const Config& config_;
  std::shared_ptr<Places> places_;
  std::map<std::string_view, const gguf::Tensor*, std::less<>> by_name_;
};

std::vector<plan::SweptType> SweptTypes(const weights::Schedule& schedule) {
  std::vector<plan::SweptType> types;
  for (const weights::Operation& operation : schedule.operations) {
    for (const weights::Matrix& matrix : std::span(operation.matrices).first(static_cast<size_t>(operation.count))) {
      auto type = std::ranges::find(types, matrix.dtype, &plan::SweptType::dtype);
      if (type == types.end()) type = types.insert(types.end(), {.dtype = matrix.dtype});
      type->bytes += matrix.size_bytes();
      type->multiplications += static_cast<uint64_t>(matrix.rows) * static_cast<uint64_t>(matrix.columns);
    }
  }
  std::ranges::stable_sort(types, std::greater(), &plan::SweptType::bytes);
  return types;
}

std::vector<plan::KvLayers> KvLayersOf(const Config& config) {
  std::vector<plan::KvLayers> kinds;
  for (const LayerConfig& layer : config.layers) {
    const auto same = std::ranges::find_if(kinds, [&](const plan::KvLayers& kind) {
      return kind.n_kv_heads == layer.n_kv_heads && kind.window == layer.window;
    });
    if (same != kinds.end()) {
      ++same->count;
    } else {
      kinds.push_back({1, layer.n_kv_heads, config.k_dim, config.v_dim, layer.window});
    }
  }
  return kinds;
}

}  // namespace

kv::CacheConfig CacheConfigFor(const Config& config, const plan::KvSettings& settings) {
  return {.layers = CacheLayers(config),
          .k_type = settings.k_type,
          .v_type = settings.v_type,
          .context_length = settings.context_length,
          .n_sequences = settings.sequences,
          .overflow = settings.overflow,
          .sinks = settings.overflow == kv::Overflow::kStop ? 0 : settings.sinks,
          .max_batch = settings.batch,
          .checkpoint_positions = settings.checkpoint_positions};
}

Result<plan::ModelFacts> FactsOf(const Config& config, std::span<const gguf::Tensor> tensors,
                                 uint64_t tokenizer_bytes) {
  SLUICE_TRY_ASSIGN(const std::shared_ptr<const Places> places, PlaceFinder(config, tensors).Find());
  plan::ModelFacts facts{.name = config.name,
                         .architecture = std::string(config.recipe->architecture),
                         .context_length = config.context_length,
                         .bounded_context = config.recipe->position_embedding};
  for (const gguf::Tensor& tensor : tensors) {
    facts.parameters += tensor.elements();
    facts.tensor_bytes += tensor.size_bytes;
    if (tensor.name == "output.weight") facts.embedding_bytes = places->weights.token_embedding.size_bytes();
  }
  facts.swept = SweptTypes(places->weights.schedule);
  facts.kv_layers = KvLayersOf(config);
  for (const LayerConfig& layer : config.layers)
    facts.attention_multiplications += static_cast<uint64_t>(layer.n_heads * (config.k_dim + config.v_dim));
  facts.tokenizer_bytes = tokenizer_bytes;

  facts.weight_bytes = [places](const weights::StoreOptions& options) {
    const auto footprint = weights::WeightStore::Plan(places->weights.schedule, options);
    return plan::WeightBytes{footprint.pinned_bytes, footprint.ring_bytes, footprint.streamed_bytes};
  };
  facts.kv_bytes = [config](const plan::KvSettings& settings) {
    return kv::CacheBytes(CacheConfigFor(config, settings));
  };
  facts.activation_bytes = [config, places](int64_t batch, int workers) {
    return Forward::ActivationBytes(config, places->weights, batch, workers);
  };
  return facts;
}

}  // namespace sluice::model
