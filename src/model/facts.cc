#include "model/facts.h"

#include <algorithm>
#include <memory>
#include <string>

#include "base/units.h"
#include "model/forward.h"
#include "model/weights.h"
#include "weights/residency.h"

namespace sluice::model {

namespace {

// A tensor directory and what the model makes of it.
struct Places {
  std::vector<gguf::Tensor> tensors;  // that the matrices point to
  Config config;
  Weights weights;
};

std::vector<plan::SweptType> SweptTypes(const weights::Schedule& schedule) {
  std::vector<plan::SweptType> types;
  for (const weights::Operation& operation : schedule.operations) {
    for (const weights::Matrix& matrix :
         std::span(operation.matrices).first(static_cast<size_t>(operation.count))) {
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

kv::CacheConfig CacheConfigFor(const Config& config, const kv::Settings& settings) {
  return {.layers = CacheLayers(config),
          .k_type = settings.k_type,
          .v_type = settings.v_type,
          .rotate = settings.rotate,
          .context_length = settings.context_length,
          .n_sequences = settings.sequences,
          .overflow = settings.overflow,
          .sinks = settings.overflow == kv::Overflow::kStop ? 0 : settings.sinks,
          .max_batch = settings.batch,
          .checkpoint_positions = settings.checkpoint_positions};
}

Result<plan::ModelFacts> FactsOf(const Config& config, std::span<const gguf::Tensor> tensors,
                                 uint64_t tokenizer_bytes) {
  const auto places = std::make_shared<Places>();
  places->tensors.assign(tensors.begin(), tensors.end());
  places->config = config;
  SLUICE_TRY_ASSIGN(places->weights, BindDirectory(places->config, places->tensors));
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
    return weights::PlanFootprint(places->weights.schedule, options);
  };
  facts.kv_bytes = [places](const kv::Settings& settings) {
    return kv::CacheBytes(CacheConfigFor(places->config, settings));
  };
  facts.activation_bytes = [places](const kv::Settings& settings, int workers, runtime::Fusion fusion) {
    return Forward::ActivationBytes(
        places->config, places->weights,
        {.max_batch = settings.batch, .context_length = settings.context_length, .fusion = fusion}, workers);
  };
  return facts;
}

}  // namespace sluice::model
