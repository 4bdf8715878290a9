#include "model/forward_buffers.h"

#include <algorithm>

#include "base/units.h"

namespace sluice::model {

namespace {

constexpr uint64_t kAlignment = 64;

ops::ActivationPlan PlanActivations(const Weights& weights, int64_t max_batch) {
  ops::ActivationPlan plan;
  plan.max_batch = std::max(max_batch, kLogitRows);
  const auto require = [&](const ops::Linear& linear) {
    if (!linear) return;
    plan.Require(linear.weight.dtype);
    plan.max_columns = std::max(plan.max_columns, linear.weight.columns);
  };
  for (const LayerWeights& layer : weights.layers) {
    for (const ops::Linear* linear : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down})
      require(*linear);
  }
  require(weights.output);
  return plan;
}

uint64_t EmbeddingRowBytes(const Weights& weights) {
  return std::max(weights.token_embedding.row_bytes(),
                  weights.position_embedding ? weights.position_embedding.row_bytes() : 0);
}

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

// Calls take(buffer, floats) for each of them.
template <typename F>
void ForEach(FloatBuffers& b, const Config& config, int64_t max_batch, F&& take) {
  const Widths widths = WidthsOf(config);
  take(b.hidden, max_batch * config.d_model);
  take(b.normed, max_batch * config.d_model);
  take(b.ffn_normed, max_batch * config.d_model);
  take(b.branch, max_batch * config.d_model);
  take(b.q, max_batch * widths.q);
  take(b.k, max_batch * widths.k);
  take(b.v, max_batch * widths.v);
  take(b.attended, max_batch * widths.attended);
  take(b.ffn, max_batch * widths.d_ff);
  take(b.up, max_batch * widths.d_ff);
  for (int which = 0; which < 2; ++which) {
    for (float** table : {&b.cos[which], &b.sin[which], &b.back_cos[which], &b.back_sin[which]})
      take(*table, max_batch * widths.pairs);
    for (float** table : {&b.lap_cos[which], &b.lap_sin[which]}) take(*table, widths.pairs);
  }
  take(b.attention_weights, max_batch * 2 * widths.heads);
  take(b.logits, kLogitRows * config.vocab_size);
}

}  // namespace

uint64_t ForwardBuffers::Bytes(const Config& config, const Weights& weights, int64_t max_batch, int workers) {
  uint64_t total = PlanActivations(weights, max_batch).Bytes() + ops::WorkerScratch::Bytes(workers);
  total += AlignUp(ops::AttentionScratch::Bytes(workers, WidthsOf(config).group, config.k_dim, config.v_dim), kAlignment);
  FloatBuffers counted;
  ForEach(counted, config, max_batch, [&](float*&, int64_t floats) {
    total += AlignUp(static_cast<uint64_t>(floats) * sizeof(float), kAlignment);
  });
  return total + AlignUp(static_cast<uint64_t>(workers) * EmbeddingRowBytes(weights), kAlignment);
}

ForwardBuffers::ForwardBuffers(const Config& config, const Weights& weights, int64_t max_batch, int workers,
                               memory::Arena& arena)
    : input(PlanActivations(weights, max_batch), arena),
      scratch(workers, arena),
      attention(workers, WidthsOf(config).group, config.k_dim, config.v_dim, arena),
      workers_(workers) {
  ForEach(*this, config, max_batch, [&](float*& buffer, int64_t floats) {
    const uint64_t bytes = static_cast<uint64_t>(floats) * sizeof(float);
    buffer = reinterpret_cast<float*>(arena.Allocate(bytes, kAlignment).data());
  });
  embedding_rows_ = arena.Allocate(static_cast<uint64_t>(workers) * EmbeddingRowBytes(weights), kAlignment);
}

}  // namespace sluice::model
