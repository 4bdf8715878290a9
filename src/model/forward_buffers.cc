#include "model/forward_buffers.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace sluice::model {

namespace {

using runtime::Fusion;

// The steps of a pass, those between embedding and logits once for each layer.
enum Step : int {
  kEmbedding,
  kAttentionInput,
  kHeads,  // the Q, K and V products and what follows on their rows
  kAttention,
  kAttentionOutput,
  kFfnInput,
  kGateAndUp,
  kDown,
  kLogits,
};

// Largest sizes over the layers.
struct Widths {
  int64_t q = 0, k = 0, v = 0, attended = 0, d_ff = 0, pairs = 0;
  int group = 1, heads = 1;
};

Widths WidthsOf(const Config& config) {
  Widths widths;
  for (const LayerConfig& layer : config.layers) {
    widths.q = std::max<int64_t>(widths.q, static_cast<int64_t>(layer.n_heads) * config.k_dim);
    widths.k = std::max<int64_t>(widths.k, static_cast<int64_t>(layer.n_kv_heads) * config.k_dim);
    widths.v = std::max<int64_t>(widths.v, static_cast<int64_t>(layer.n_kv_heads) * config.v_dim);
    widths.attended = std::max<int64_t>(widths.attended, static_cast<int64_t>(layer.n_heads) * config.v_dim);
    widths.d_ff = std::max(widths.d_ff, layer.d_ff);
    widths.heads = std::max(widths.heads, layer.n_heads);
    widths.group = std::max(widths.group, layer.n_heads / layer.n_kv_heads);
  }
  widths.pairs = config.k_dim / 2;
  return widths;
}

uint64_t EmbeddingRowBytes(const Weights& weights) {
  return std::max(weights.token_embedding.row_bytes(),
                  weights.position_embedding ? weights.position_embedding.row_bytes() : 0);
}

// The forms that some linear layers of all blocks ask for.
template <typename... Member>
ops::ActivationForms FormsOf(const Weights& weights, Member... members) {
  ops::ActivationForms forms;
  for (const LayerWeights& layer : weights.layers) {
    for (const ops::Linear* linear : {&(layer.*members)...}) {
      if (*linear) forms.Require(linear->weight.dtype);
    }
  }
  return forms;
}

bool AnyLayer(const Config& config, bool LayerConfig::*has) {
  return std::ranges::any_of(config.layers, [&](const LayerConfig& layer) { return layer.*has; });
}

bool AnyNorm(const Weights& weights, NormWeights LayerWeights::*norm) {
  return std::ranges::any_of(weights.layers,
                             [&](const LayerWeights& layer) { return (layer.*norm).present; });
}

}  // namespace

ForwardBuffers::ForwardBuffers(const Config& config, const Weights& weights, const ForwardOptions& options,
                               int workers)
    : workers_(workers) {
  AddInputs(config, weights, options);
  AddAttention(config, weights, options);
  AddFeedForward(config, weights, options);
  AddRest(config, weights, options);
  bytes_ = lifetimes_.Place();
}

void ForwardBuffers::Attach(std::span<std::byte> memory) {
  SLUICE_CHECK(memory.size() >= bytes_);
  for (size_t i = 0; i < takes_.size(); ++i)
    takes_[i](
        memory.subspan(static_cast<size_t>(lifetimes_.offset(i)), static_cast<size_t>(lifetimes_.bytes(i))));
  takes_.clear();
}

void ForwardBuffers::Add(uint64_t bytes, int first, int last, Take take) {
  lifetimes_.Add(bytes, first, last);
  takes_.push_back(std::move(take));
}

void ForwardBuffers::AddFloats(float** buffer, int64_t count, int first, int last) {
  *buffer = nullptr;
  if (count == 0) return;
  Add(static_cast<uint64_t>(count) * sizeof(float), first, last,
      [buffer](std::span<std::byte> memory) { *buffer = reinterpret_cast<float*>(memory.data()); });
}

void ForwardBuffers::AddInput(ops::Activations* input, const ops::ActivationPlan& plan, int first, int last) {
  Add(plan.Bytes(), first, last,
      [input, plan](std::span<std::byte> memory) { *input = ops::Activations(plan, memory); });
}

void ForwardBuffers::AddInputs(const Config& config, const Weights& weights, const ForwardOptions& options) {
  const Widths widths = WidthsOf(config);
  const auto plan = [&](const ops::ActivationForms& forms, int64_t columns, bool made_row_by_row) {
    return ops::ActivationPlan{.forms = forms,
                               .max_batch = options.max_batch,
                               .max_columns = columns,
                               .made_row_by_row = made_row_by_row,
                               .fused = options.fusion >= Fusion::kNorm,
                               .workers = workers_};
  };
  using W = LayerWeights;
  AddInput(&attention_input, plan(FormsOf(weights, &W::q, &W::k, &W::v), config.d_model, true),
           kAttentionInput, kHeads);
  AddInput(&attended_input, plan(FormsOf(weights, &W::o), widths.attended, false), kAttentionOutput,
           kAttentionOutput);
  // In parallel blocks the feed-forward network reads the stream as it was before attention.
  AddInput(&ffn_input, plan(FormsOf(weights, &W::gate, &W::up), config.d_model, true),
           AnyLayer(config, &LayerConfig::parallel) ? kAttentionInput : kFfnInput, kGateAndUp);
  AddInput(&down_input, plan(FormsOf(weights, &W::down), widths.d_ff, false), kDown, kDown);
  ops::ActivationPlan output{.max_batch = kLogitRows,
                             .max_columns = config.d_model,
                             .made_row_by_row = true,
                             .fused = options.fusion >= Fusion::kNorm,
                             .workers = workers_};
  output.forms.Require(weights.output.weight.dtype);
  AddInput(&output_input, output, kLogits, kLogits);
}

void ForwardBuffers::AddAttention(const Config& config, const Weights& weights,
                                  const ForwardOptions& options) {
  const Widths widths = WidthsOf(config);
  const int64_t batch = options.max_batch;
  AddFloats(&q, batch * widths.q, kHeads, kAttention);
  AddFloats(&k, batch * widths.k, kHeads, kHeads);
  AddFloats(&v, batch * widths.v, kHeads, kHeads);
  if (options.fusion < Fusion::kAttention) score_tiles = ops::MostTiles(options.context_length);
  AddFloats(&scores, batch * widths.heads * score_tiles * kernels::kTileSlots, kAttention, kAttention);
  AddFloats(&attention_weights, batch * 2 * widths.heads, kAttention, kAttention);
  AddFloats(&attended, batch * widths.attended, kAttention, kAttentionOutput);
  const bool joins_whole = options.fusion < Fusion::kAll || AnyNorm(weights, &LayerWeights::post_attn_norm);
  AddFloats(&attention_branch, joins_whole ? batch * config.d_model : 0, kAttentionOutput, kAttentionOutput);
  const ops::AttentionSize size{widths.group, config.k_dim, config.v_dim, batch};
  Add(ops::AttentionScratch::Bytes(workers_, size), kAttention, kAttention,
      [this, size](std::span<std::byte> memory) { attention = ops::AttentionScratch(size, memory); });
}

void ForwardBuffers::AddFeedForward(const Config& config, const Weights& weights,
                                    const ForwardOptions& options) {
  const int64_t d_ff = WidthsOf(config).d_ff;
  const int64_t batch = options.max_batch;
  AddFloats(&ffn, batch * d_ff, kGateAndUp, kDown);
  const bool has_gate = config.recipe->gated && options.fusion < Fusion::kAll;
  AddFloats(&up, has_gate ? batch * d_ff : 0, kGateAndUp, kGateAndUp);
  const bool joins_whole = options.fusion < Fusion::kAll || AnyNorm(weights, &LayerWeights::post_ffn_norm);
  AddFloats(&ffn_branch, joins_whole ? batch * config.d_model : 0, kDown, kDown);
}

void ForwardBuffers::AddRest(const Config& config, const Weights& weights, const ForwardOptions& options) {
  const int64_t batch = options.max_batch;
  const int64_t pairs = WidthsOf(config).pairs;
  AddFloats(&hidden, batch * config.d_model, kEmbedding, kLogits);
  for (int which = 0; which < 2; ++which) {
    for (float** table : {&cos[which], &sin[which], &back_cos[which], &back_sin[which]})
      AddFloats(table, batch * pairs, kEmbedding, kLogits);
    for (float** table : {&lap_cos[which], &lap_sin[which]}) AddFloats(table, pairs, kEmbedding, kLogits);
  }
  AddFloats(&logits, kLogitRows * config.vocab_size, kLogits, kLogits);
  // The logits' rows may be more than a batch.
  const int64_t most_rows = std::max(batch, kLogitRows);
  Add(ops::WorkerScratch::Bytes(workers_, most_rows), kEmbedding, kLogits,
      [this, most_rows](std::span<std::byte> memory) { scratch = ops::WorkerScratch(most_rows, memory); });
  Add(static_cast<uint64_t>(workers_) * AlignUp(EmbeddingRowBytes(weights), 64), kEmbedding, kEmbedding,
      [this](std::span<std::byte> memory) { embedding_rows_ = memory; });
  Add(static_cast<uint64_t>(workers_ * config.d_model) * sizeof(float), kEmbedding, kEmbedding,
      [this, floats = static_cast<size_t>(workers_ * config.d_model)](std::span<std::byte> memory) {
        embeddings_ = {reinterpret_cast<float*>(memory.data()), floats};
      });
}

}  // namespace sluice::model
