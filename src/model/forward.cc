#include "model/forward.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "base/check.h"
#include "base/math.h"
#include "formats/decode.h"
#include "ops/rows.h"
#include "ops/xielu.h"

namespace sluice::model {

namespace {

using runtime::Fusion;

// Rows of embeddings that are read side by side. They lie in the page cache until each has had its turn:
// half a MiB or so.
constexpr int64_t kEmbeddingsAtATime = 128;

// The slope of each head (Press et al., arXiv 2108.12409), for any number of heads.
std::vector<float> AlibiSlopes(int n_heads, float max_bias) {
  int power = 1;
  while (power * 2 <= n_heads) power *= 2;
  std::vector<float> slopes;
  for (int h = 0; h < n_heads; ++h) {
    const double exponent = h < power ? -static_cast<double>(max_bias) * (h + 1) / power
                                      : -static_cast<double>(max_bias) / 2 * (2 * (h - power) + 1) / power;
    slopes.push_back(static_cast<float>(PowDouble(2.0, exponent)));
  }
  return slopes;
}

}  // namespace

std::vector<kv::LayerShape> CacheLayers(const Config& config) {
  std::vector<kv::LayerShape> layers;
  for (const LayerConfig& layer : config.layers)
    layers.push_back({layer.n_kv_heads, config.k_dim, config.v_dim, layer.window});
  return layers;
}

uint64_t Forward::ActivationBytes(const Config& config, const Weights& weights, const ForwardOptions& options,
                                  int workers) {
  return ForwardBuffers(config, weights, options, workers).bytes();
}

Forward::Forward(const runtime::Context& context, const Config& config, const Weights& weights,
                 weights::WeightStore& store, const ForwardOptions& options)
    : context_(context),
      config_(config),
      weights_(weights),
      store_(store),
      options_(options),
      buffers_(config, weights, options, context.pool->size()) {}

Forward::~Forward() = default;

void Forward::set_observer(Observer observer) {
  SLUICE_CHECK(options_.fusion == Fusion::kNone);
  observer_ = std::move(observer);
}

Result<std::unique_ptr<Forward>> Forward::Create(const runtime::Context& context, const Config& config,
                                                 const Weights& weights, weights::WeightStore& store,
                                                 const ForwardOptions& options) {
  SLUICE_CHECK(options.max_batch > 0);
  std::unique_ptr<Forward> forward(new Forward(context, config, weights, store, options));
  SLUICE_TRY_ASSIGN(
      forward->arena_,
      memory::Arena::Create(forward->buffers_.bytes(), memory::Account::kActivations, *context.ledger,
                            {.page_size = platform::PageSize::kHuge, .touch = true}));
  forward->buffers_.Attach(forward->arena_.bytes());
  for (size_t i = 0; i < weights.schedule.operations.size(); ++i)
    forward->operations_.emplace_back(store, weights.schedule, static_cast<int>(i), context.pool->size());

  ops::RopeSpec rope = config.rope;
  rope.divisors = weights.rope_divisors;
  if (rope.scaling == ops::RopeScaling::kLongRope) {
    const bool is_long = options.context_length > rope.original_context;
    rope.divisors = is_long ? weights.rope_divisors_long : weights.rope_divisors_short;
  }
  forward->ropes_.emplace_back(rope);
  forward->ropes_.emplace_back(config.sliding_rope);
  if (config.alibi_max_bias > 0)
    forward->alibi_slopes_ = AlibiSlopes(config.layers[0].n_heads, config.alibi_max_bias);
  forward->rows_.reserve(static_cast<size_t>(options.max_batch));
  return forward;
}

Status Forward::Admit(std::span<const BatchRow> rows) {
  SLUICE_CHECK(!rows.empty() && static_cast<int64_t>(rows.size()) <= options_.max_batch);
  for (const BatchRow& row : rows) {
    if (row.token < 0 || row.token >= config_.vocab_size) {
      return Fail(ErrorCode::kInvalidArgument, "token id {} is outside the vocabulary of {}", row.token,
                  config_.vocab_size);
    }
  }
  // Learned positions end where the model's table does.
  const int64_t positions = weights_.position_embedding ? weights_.position_embedding.rows : INT64_MAX;
  rows_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t position = rows[i].sequence->length();
    Status admitted = position < positions ? rows[i].sequence->Append(1)
                                           : Fail(ErrorCode::kDoesNotFit,
                                                  "the model has {} positions, and all are taken", positions);
    if (!admitted) {
      Withdraw(rows.first(i));
      return admitted;
    }
    rows_.push_back({rows[i].sequence, position});
  }
  return {};
}

// Takes the rows' positions back, in any case the last ones of their sequences.
void Forward::Withdraw(std::span<const BatchRow> rows) {
  for (const BatchRow& row : rows) row.sequence->Truncate(row.sequence->length() - 1);
}

Status Forward::Run(std::span<const BatchRow> rows, kv::Cache& cache, const LogitsSink& sink,
                    const GoOn& go_on) {
  return RunPart(rows, {0, static_cast<int>(config_.layers.size())}, cache, sink, go_on);
}

Status Forward::RunLayers(std::span<const BatchRow> rows, LayerRange layers, kv::Cache& cache,
                          const LogitsSink& sink, const GoOn& go_on) {
  SLUICE_CHECK(store_.options().residency == weights::Residency::kMmap);
  SLUICE_CHECK(0 <= layers.first && layers.first <= layers.end &&
               layers.end <= static_cast<int>(config_.layers.size()));
  return RunPart(rows, layers, cache, sink, go_on);
}

Status Forward::RunPart(std::span<const BatchRow> rows, LayerRange layers, kv::Cache& cache,
                        const LogitsSink& sink, const GoOn& go_on) {
  SLUICE_TRY(Admit(rows));
  // This thread is a worker like the others: it stays where they are.
  const auto cores = context_.pool->KeepCallerOnCores();
  layers_done_ = 0;
  const double start = tracer_ == nullptr ? 0 : context_.clock->NowSeconds();
  Status status = RunAdmitted(rows, layers, cache, sink, go_on);
  if (!status) Withdraw(rows);
  if (status && tracer_ != nullptr)
    tracer_->OnPass(static_cast<int64_t>(rows.size()), start, context_.clock->NowSeconds());
  return status;
}

Status Forward::RunAdmitted(std::span<const BatchRow> rows, LayerRange layers, kv::Cache& cache,
                            const LogitsSink& sink, const GoOn& go_on) {
  const auto wanted =
      std::count_if(rows.begin(), rows.end(), [](const BatchRow& row) { return row.wants_logits; });
  SLUICE_TRY(store_.BeginPass(static_cast<int>((wanted + kLogitRows - 1) / kLogitRows)));
  runtime::StepTimer steps = Steps(-1);
  SLUICE_TRY(Embed(rows));
  PrepareTurns(cache);
  steps.Done("embedding");
  for (int layer = layers.first; layer < layers.end; ++layer) {
    SLUICE_TRY(RunLayer(layer, cache, go_on));
    Observe(Stage::kLayerOutput, layer, buffers_.hidden, config_.d_model);
    ++layers_done_;
  }
  SLUICE_TRY(Output(rows, sink, go_on));
  SLUICE_TRY(store_.EndPass());
  for (const BatchRow& row : rows) row.sequence->Commit();
  return {};
}

Status Forward::LookUp(const weights::Matrix& table, int64_t row, int worker, std::span<float> out) {
  const auto bytes = buffers_.embedding_row(worker).first(table.row_bytes());
  SLUICE_TRY(store_.ReadRow(table, row, bytes));
  formats::DecodeRow(table.dtype, bytes.data(), out);
  return {};
}

Status Forward::Embed(std::span<const BatchRow> rows) {
  std::mutex mutex;
  Status status;
  const auto count = static_cast<int64_t>(rows.size());
  for (int64_t first = 0; first < count; first += kEmbeddingsAtATime) {
    const int64_t some = std::min(count - first, kEmbeddingsAtATime);
    if (some > 1) ExpectEmbeddings(rows, first, some);
    ops::ForEachRow(context_, some, [&](int64_t i, int worker) {
      Status embedded = EmbedRow(rows[static_cast<size_t>(first + i)], first + i, worker);
      if (embedded) return;
      const std::lock_guard lock(mutex);
      status = std::move(embedded);
    });
    SLUICE_TRY(status);
  }
  Observe(Stage::kEmbedding, -1, buffers_.hidden, config_.d_model);
  return {};
}

void Forward::ExpectEmbeddings(std::span<const BatchRow> rows, int64_t first, int64_t count) const {
  for (int64_t i = first; i < first + count; ++i) {
    const BatchRow& row = rows[static_cast<size_t>(i)];
    if (row.stream != nullptr) continue;
    store_.ExpectRow(weights_.token_embedding, row.token);
    if (weights_.position_embedding)
      store_.ExpectRow(weights_.position_embedding, rows_[static_cast<size_t>(i)].position);
  }
}

Status Forward::EmbedRow(const BatchRow& row, int64_t i, int worker) {
  ForwardBuffers& b = buffers_;
  const size_t width = static_cast<size_t>(config_.d_model);
  const std::span<float> hidden(b.hidden + i * config_.d_model, width);
  const int64_t position = rows_[static_cast<size_t>(i)].position;
  if (row.stream != nullptr) {
    std::copy(row.stream, row.stream + width, hidden.data());
  } else {
    SLUICE_TRY(LookUp(weights_.token_embedding, row.token, worker, hidden));
    if (config_.embedding_scale != 1.0f) {
      for (float& x : hidden) x *= config_.embedding_scale;
    }
    if (weights_.position_embedding) {
      const std::span<float> learned = b.embedding(worker);
      SLUICE_TRY(LookUp(weights_.position_embedding, position, worker, learned));
      for (size_t c = 0; c < width; ++c) hidden[c] += learned[c];
    }
    if (weights_.embedding_norm.present)
      NormalizeRow(weights_.embedding_norm.weight, weights_.embedding_norm.bias, hidden.data(),
                   config_.d_model, hidden.data());
  }
  for (size_t which = 0; which < 2; ++which) {
    const int64_t pairs = ropes_[which].pairs();
    ropes_[which].Angles(row.sequence->RopePosition(position), b.cos[which] + i * pairs,
                         b.sin[which] + i * pairs);
  }
  return {};
}

void Forward::NormalizeRow(const float* weight, const float* bias, const float* x, int64_t width,
                           float* y) const {
  if (config_.recipe->norm == Norm::kRms) {
    context_.kernels->rms_norm(x, weight, width, config_.norm_eps, y);
  } else {
    context_.kernels->layer_norm(x, weight, bias, width, config_.norm_eps, y);
  }
}

void Forward::Normalize(const NormWeights& norm, int64_t width, float* x) {
  if (!norm.present) return;
  ops::ForEachRow(context_, static_cast<int64_t>(rows_.size()), [&](int64_t i, int) {
    NormalizeRow(norm.weight, norm.bias, x + i * width, width, x + i * width);
  });
}

void Forward::SetInput(ops::Activations& input, int operation, const NormWeights& norm) {
  const ops::ActivationForms& forms = OperationAt(operation).forms();
  const auto batch = static_cast<int64_t>(rows_.size());
  if (!norm.present) {
    input.Set(context_, forms, buffers_.hidden, batch, config_.d_model);
    return;
  }
  input.SetRows(context_, forms, batch, config_.d_model, [this, &norm](int64_t row, float* out) {
    NormalizeRow(norm.weight, norm.bias, buffers_.hidden + row * config_.d_model, config_.d_model, out);
  });
}

Status Forward::RunLayer(int index, kv::Cache& cache, const GoOn& go_on) {
  ForwardBuffers& b = buffers_;
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  runtime::StepTimer steps = Steps(index);
  if (config_.layers[static_cast<size_t>(index)].parallel) {
    // Both branches read the residual stream as it is now.
    const bool second = !w.ffn_norm.present && w.attn_norm_2.present;
    SetInput(b.attention_input, w.qkv_operation, second ? w.attn_norm_2 : w.attn_norm);
    SetInput(b.ffn_input, w.ffn_operation, w.ffn_norm.present ? w.ffn_norm : w.attn_norm);
    steps.Done("norm");
    SLUICE_TRY(Attend(index, cache, go_on));
    return FeedForward(index, go_on);
  }
  SetInput(b.attention_input, w.qkv_operation, w.attn_norm);
  steps.Done("norm");
  SLUICE_TRY(Attend(index, cache, go_on));
  steps = Steps(index);
  SetInput(b.ffn_input, w.ffn_operation, w.ffn_norm);
  steps.Done("norm");
  return FeedForward(index, go_on);
}

Status Forward::ProjectOntoStream(const ops::Linear& linear, int operation, const ops::Activations& input,
                                  const NormWeights& norm, float* branch, const GoOn& go_on) {
  const int64_t d_model = config_.d_model;
  const bool part_by_part = Fuses(Fusion::kAll) && !norm.present;
  const ops::Projection output = {.linear = &linear,
                                  .y = part_by_part ? nullptr : branch,
                                  .stride = d_model,
                                  .residual = buffers_.hidden,
                                  .multiplier = config_.residual_scale};
  SLUICE_TRY(ops::Project(context_, buffers_.scratch, OperationAt(operation), input, {&output, 1}, go_on));
  if (part_by_part) return {};
  Normalize(norm, d_model, branch);
  ops::ForEachRow(context_, static_cast<int64_t>(rows_.size()), [&](int64_t i, int) {
    const float* y = branch + i * d_model;
    float* h = buffers_.hidden + i * d_model;
    for (int64_t c = 0; c < d_model; ++c) h[c] += config_.residual_scale * y[c];
  });
  return {};
}

Status Forward::FeedForward(int index, const GoOn& go_on) {
  ForwardBuffers& b = buffers_;
  const LayerConfig& layer = config_.layers[static_cast<size_t>(index)];
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];

  Observe(Stage::kFfnInput, index, b.ffn_input.f32(), config_.d_model);
  runtime::StepTimer steps = Steps(index);
  SLUICE_TRY(GateAndUp(index, go_on));
  Normalize(w.ffn_sub_norm, layer.d_ff, b.ffn);
  steps.Done("gate and up");

  Observe(Stage::kFfnActivated, index, b.ffn, layer.d_ff);
  b.down_input.Set(context_, OperationAt(w.down_operation).forms(), b.ffn, static_cast<int64_t>(rows_.size()),
                   layer.d_ff);
  SLUICE_TRY(ProjectOntoStream(w.down, w.down_operation, b.down_input, w.post_ffn_norm, b.ffn_branch, go_on));
  steps.Done("down");
  return {};
}

Status Forward::GateAndUp(int index, const GoOn& go_on) {
  ForwardBuffers& b = buffers_;
  const kernels::Kernels& kernels = *context_.kernels;
  const LayerConfig& layer = config_.layers[static_cast<size_t>(index)];
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  const ops::Operation& operation = OperationAt(w.ffn_operation);
  const auto batch = static_cast<int64_t>(rows_.size());
  const int64_t d_ff = layer.d_ff;

  if (config_.recipe->activation == Activation::kXielu) {
    const ops::Projection up = {.linear = &w.up, .y = b.ffn, .stride = d_ff};
    SLUICE_TRY(ops::Project(context_, b.scratch, operation, b.ffn_input, {&up, 1}, go_on));
    const ops::XieluConstants constants{layer.xielu_alpha_n, layer.xielu_alpha_p, layer.xielu_beta,
                                        layer.xielu_eps};
    ops::ForEachRow(context_, batch, [&](int64_t i, int) { ops::Xielu(constants, b.ffn + i * d_ff, d_ff); });
    return {};
  }
  ops::GateFn activation = kernels.silu;
  if (config_.recipe->activation == Activation::kGeluTanh) activation = kernels.gelu_tanh;
  if (config_.recipe->activation == Activation::kReluSquared) activation = kernels.relu_squared;
  if (Fuses(Fusion::kAll) || !w.gate) {
    return ops::ProjectGated(context_, b.scratch, operation, b.ffn_input, w.gate ? w.gate : w.up,
                             w.gate ? &w.up : nullptr, activation, b.ffn, go_on);
  }
  SLUICE_TRY(ops::ProjectPair(context_, b.scratch, operation, b.ffn_input, w.gate, w.up, b.ffn, b.up, go_on));
  ops::ForEachRow(context_, batch, [&](int64_t i, int) {
    activation(b.ffn + i * d_ff, b.up + i * d_ff, d_ff, b.ffn + i * d_ff);
  });
  return {};
}

Status Forward::Output(std::span<const BatchRow> rows, const LogitsSink& sink, const GoOn& go_on) {
  ForwardBuffers& b = buffers_;
  const kernels::Kernels& kernels = *context_.kernels;
  const int64_t vocab_size = config_.vocab_size;
  std::array<size_t, kLogitRows> wanted;
  runtime::StepTimer steps = Steps(-1);
  for (size_t next = 0; next < rows.size();) {
    int64_t count = 0;
    for (; next < rows.size() && count < kLogitRows; ++next) {
      if (rows[next].wants_logits) wanted[static_cast<size_t>(count++)] = next;
    }
    if (count == 0) break;
    b.output_input.SetRows(
        context_, operations_.back().forms(), count, config_.d_model, [this, &wanted](int64_t i, float* out) {
          const float* h =
              buffers_.hidden + static_cast<int64_t>(wanted[static_cast<size_t>(i)]) * config_.d_model;
          NormalizeRow(weights_.output_norm.weight, weights_.output_norm.bias, h, config_.d_model, out);
        });
    steps.Done("output norm");
    if (observer_) observer_(Stage::kOutputInput, -1, b.output_input.f32(), count, config_.d_model);
    if (!sink) continue;
    const ops::Projection output = {.linear = &weights_.output, .y = b.logits, .stride = vocab_size};
    SLUICE_TRY(ops::Project(context_, b.scratch, operations_.back(), b.output_input, {&output, 1}, go_on));
    for (int64_t i = 0; i < count; ++i) {
      float* logits = b.logits + i * vocab_size;
      if (config_.logit_scale != 1.0f) {
        for (int64_t c = 0; c < vocab_size; ++c) logits[c] *= config_.logit_scale;
      }
      if (config_.final_softcap > 0) kernels.softcap(logits, vocab_size, config_.final_softcap, logits);
    }
    steps.Done("logits");
    for (int64_t i = 0; i < count; ++i) {
      const float* logits = b.logits + i * vocab_size;
      sink(wanted[static_cast<size_t>(i)], {logits, static_cast<size_t>(vocab_size)});
    }
  }
  return {};
}

}  // namespace sluice::model
