// Forward's attention branch: queries, keys and values of a layer, and what comes of them.
#include <algorithm>

#include "base/math.h"
#include "model/forward.h"
#include "ops/rows.h"

namespace sluice::model {

using runtime::Fusion;

void Forward::PrepareTurns(const kv::Cache& cache) {
  ForwardBuffers& b = buffers_;
  const kv::Retention& full = cache.retention(kv::Pool::kFull);
  const int64_t lap = cache.heavy().lap();
  if (full.sinks == 0 && lap == 0) return;
  for (size_t which = 0; which < 2; ++which) ropes_[which].Turn(lap, b.lap_cos[which], b.lap_sin[which]);
  ops::ForEachRow(context_, static_cast<int64_t>(rows_.size()), [&](int64_t i, int) {
    const int64_t position = rows_[static_cast<size_t>(i)].position;
    const int64_t back = lap > 0 ? 2 * lap - cache.heavy().FramePosition(position)
                                 : ops::SinkView({full.window, full.sinks}, position) - position;
    for (size_t which = 0; which < 2; ++which) {
      const int64_t pairs = ropes_[which].pairs();
      ropes_[which].Turn(back, b.back_cos[which] + i * pairs, b.back_sin[which] + i * pairs);
    }
  });
}

ops::Turns Forward::TurnsOf(const LayerConfig& layer) const {
  if (!layer.rope) return {};
  const bool half = config_.recipe->rope == RopeStyle::kHalf;
  const ForwardBuffers& b = buffers_;
  return {.turn = half ? context_.kernels->rope_half : context_.kernels->rope_interleaved,
          .pairs = ropes_[layer.sliding].pairs(),
          .back_cos = b.back_cos[layer.sliding],
          .back_sin = b.back_sin[layer.sliding],
          .lap_cos = b.lap_cos[layer.sliding],
          .lap_sin = b.lap_sin[layer.sliding]};
}

Status Forward::Attend(int index, kv::Cache& cache, const GoOn& go_on) {
  ForwardBuffers& b = buffers_;
  const LayerConfig& layer = config_.layers[static_cast<size_t>(index)];
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];

  Observe(Stage::kAttentionInput, index, b.attention_input.f32(), config_.d_model);
  SLUICE_TRY(ProjectHeads(index, cache, go_on));
  runtime::StepTimer steps = Steps(index);
  Observe(Stage::kQuery, index, b.q, w.q.rows());
  Observe(Stage::kKey, index, b.k, w.k.rows());
  Observe(Stage::kValue, index, b.v, w.v.rows());
  const ops::AttentionSpec spec{.layer = index,
                                .n_heads = layer.n_heads,
                                .n_kv_heads = layer.n_kv_heads,
                                .k_dim = config_.k_dim,
                                .v_dim = config_.v_dim,
                                .view = cache.view(index),
                                .scale = config_.attention_scale,
                                .softcap = config_.attention_softcap,
                                .alibi_slopes = alibi_slopes_.empty() ? nullptr : alibi_slopes_.data(),
                                .turns = TurnsOf(layer),
                                .weights = cache.heavy().slots > 0 ? b.attention_weights : nullptr,
                                .scores = b.scores,
                                .score_tiles = b.score_tiles};
  ops::Attention(context_, b.attention, spec, cache, rows_, b.q, b.attended);
  if (spec.weights != nullptr) ops::AddScores(context_, b.attention, spec, cache, rows_, b.q);
  const int64_t width = w.o.weight.columns;
  Normalize(w.attn_sub_norm, width, b.attended);
  steps.Done("attention");

  Observe(Stage::kAttended, index, b.attended, width);
  b.attended_input.Set(context_, OperationAt(w.o_operation).forms(), b.attended,
                       static_cast<int64_t>(rows_.size()), width);
  SLUICE_TRY(
      ProjectOntoStream(w.o, w.o_operation, b.attended_input, w.post_attn_norm, b.attention_branch, go_on));
  steps.Done("attention output");
  Observe(Stage::kAttentionOutput, index, b.hidden, config_.d_model);
  return {};
}

Status Forward::ProjectHeads(int index, kv::Cache& cache, const GoOn& go_on) {
  ForwardBuffers& b = buffers_;
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  const auto batch = static_cast<int64_t>(rows_.size());
  const ops::Operation& operation = OperationAt(w.qkv_operation);
  const ops::Projection qkv[] = {{.linear = &w.q, .y = b.q, .stride = w.q.rows()},
                                 {.linear = &w.k, .y = b.k, .stride = w.k.rows()},
                                 {.linear = &w.v, .y = b.v, .stride = w.v.rows()}};
  runtime::StepTimer steps = Steps(index);
  if (Fuses(Fusion::kQkv)) {
    SLUICE_TRY(ops::Project(context_, b.scratch, operation, b.attention_input, qkv, go_on));
    steps.Done("qkv");
    ops::ForEachRow(context_, batch, [&](int64_t row, int) {
      NormalizeHeads(index, row);
      TurnHeads(index, row);
      StoreHeads(index, row, cache);
    });
    steps.Done("heads");
    return {};
  }
  SLUICE_TRY(ops::ProjectApart(context_, b.scratch, operation, b.attention_input, qkv, go_on));
  steps.Done("qkv");
  ops::ForEachRow(context_, batch, [&](int64_t row, int) { NormalizeHeads(index, row); });
  ops::ForEachRow(context_, batch, [&](int64_t row, int) { TurnHeads(index, row); });
  ops::ForEachRow(context_, batch, [&](int64_t row, int) { StoreHeads(index, row, cache); });
  steps.Done("heads");
  return {};
}

// Clamps and normalises.
void Forward::NormalizeHeads(int index, int64_t row) {
  const LayerConfig& layer = config_.layers[static_cast<size_t>(index)];
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  const int64_t k_dim = config_.k_dim;
  float* const q = buffers_.q + row * w.q.rows();
  float* const k = buffers_.k + row * w.k.rows();
  float* const v = buffers_.v + row * w.v.rows();
  const auto clamp = [&](float* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) x[i] = std::min(std::max(x[i], -config_.clamp_qkv), config_.clamp_qkv);
  };
  if (config_.clamp_qkv > 0) {
    clamp(q, w.q.rows());
    clamp(k, w.k.rows());
    clamp(v, w.v.rows());
  }
  const auto normalize = [&](const QkNormWeights& norm, float* x, int n_heads) {
    if (norm.weight == nullptr) return;
    const bool over_row = config_.recipe->qk_norm == QkNorm::kRow;
    const int64_t width = over_row ? n_heads * k_dim : k_dim;
    for (int64_t i = 0; i < (over_row ? 1 : n_heads); ++i) {
      float* head = x + i * width;
      NormalizeRow(norm.weight + i * norm.head_stride, nullptr, head, width, head);
    }
  };
  normalize(w.q_norm, q, layer.n_heads);
  normalize(w.k_norm, k, layer.n_kv_heads);
}

// Turns queries and keys to their positions, and scales queries where the model does.
void Forward::TurnHeads(int index, int64_t row) {
  const LayerConfig& layer = config_.layers[static_cast<size_t>(index)];
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  float* const q = buffers_.q + row * w.q.rows();
  float* const k = buffers_.k + row * w.k.rows();
  if (layer.rope) {
    const kernels::Kernels& kernels = *context_.kernels;
    const auto turn = config_.recipe->rope == RopeStyle::kHalf ? kernels.rope_half : kernels.rope_interleaved;
    const int64_t pairs = ropes_[layer.sliding].pairs();
    const float* cos = buffers_.cos[layer.sliding] + row * pairs;
    const float* sin = buffers_.sin[layer.sliding] + row * pairs;
    for (int h = 0; h < layer.n_heads; ++h) turn(q + h * config_.k_dim, cos, sin, pairs);
    for (int h = 0; h < layer.n_kv_heads; ++h) turn(k + h * config_.k_dim, cos, sin, pairs);
  }
  if (config_.attention_temperature != 0) {
    const int64_t position = rows_[static_cast<size_t>(row)].position;
    const double steps = static_cast<double>(position / config_.attention_temperature_length + 1);
    const float temperature = static_cast<float>(1.0 + config_.attention_temperature * LogDouble(steps));
    for (int64_t c = 0; c < w.q.rows(); ++c) q[c] *= temperature;
  }
}

void Forward::StoreHeads(int index, int64_t row, kv::Cache& cache) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  ops::StoreKeyValue(context_, cache, index, rows_[static_cast<size_t>(row)], buffers_.k + row * w.k.rows(),
                     buffers_.v + row * w.v.rows());
}

}  // namespace sluice::model
