// ForwardBuffers: the activations of one batch on its way through the layers, all in one block of memory.
// What is needed at different steps of a layer lies in the same place. What the block takes is counted by the
// same walk that cuts it up, so that a plan and what is used cannot differ.
//
// Belongs to one Forward; its workers write disjoint rows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "memory/lifetimes.h"
#include "model/config.h"
#include "model/weights.h"
#include "ops/activations.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "runtime/fusion.h"

namespace sluice::model {

// Rows whose logits are computed together; more rows that want logits take several rounds.
inline constexpr int64_t kLogitRows = 16;

// What memory a pass takes depends on.
struct ForwardOptions {
  int64_t max_batch = 512;     // rows of one call
  int64_t context_length = 0;  // most tokens that a row sees; decides between LongRoPE's factors, too
  runtime::Fusion fusion = runtime::Fusion::kAll;
};

struct ForwardBuffers {
  ForwardBuffers(const Config& config, const Weights& weights, const ForwardOptions& options, int workers);
  ForwardBuffers(const ForwardBuffers&) = delete;
  ForwardBuffers& operator=(const ForwardBuffers&) = delete;

  uint64_t bytes() const { return bytes_; }
  // Gives everything below its place in `memory` [bytes()], aligned to a cache line, which outlives this.
  void Attach(std::span<std::byte> memory);

  // Inputs of the products.
  ops::Activations attention_input;  // [max_batch, d_model]
  ops::Activations attended_input;   // [max_batch, n_heads · v_dim]
  ops::Activations ffn_input;        // [max_batch, d_model]
  ops::Activations down_input;       // [max_batch, d_ff]
  ops::Activations output_input;     // [kLogitRows, d_model]

  float* hidden;            // [max_batch, d_model], the residual stream
  float* attention_branch;  // [max_batch, d_model], before it joins the stream; only where it can't join part
                            // by part
  float* ffn_branch;        // [max_batch, d_model], the same
  float* q;                 // [max_batch, n_heads · k_dim]
  float* k;                 // [max_batch, n_kv_heads · k_dim]
  float* v;                 // [max_batch, n_kv_heads · v_dim]
  float* scores;            // ops::AttentionSpec::scores; null where they stay within their tile
  float* attended;          // [max_batch, n_heads · v_dim]
  float* ffn;               // [max_batch, d_ff]
  float* up;                // [max_batch, d_ff]; only where gate and up are not fused
  float* cos[2];            // [max_batch, pairs], full and sliding layers
  float* sin[2];
  float* back_cos[2];  // [max_batch, pairs], ops::Turns
  float* back_sin[2];
  float* lap_cos[2];  // [pairs]
  float* lap_sin[2];
  float* attention_weights;  // [max_batch, n_heads, 2], AttentionSpec::weights
  float* logits;             // [kLogitRows, vocab_size]
  int64_t score_tiles = 0;   // AttentionSpec::score_tiles

  ops::WorkerScratch scratch;
  ops::AttentionScratch attention;

  // Room for a row of either table of embeddings, as the file stores it and as floats: one for each worker.
  std::span<std::byte> embedding_row(int worker) const { return Of(embedding_rows_, worker); }
  std::span<float> embedding(int worker) const { return Of(embeddings_, worker); }

 private:
  using Take = std::function<void(std::span<std::byte> memory)>;

  template <typename T>
  std::span<T> Of(std::span<T> all, int worker) const {
    const size_t size = all.size() / static_cast<size_t>(workers_);
    return all.subspan(static_cast<size_t>(worker) * size, size);
  }

  // A piece of the block, needed from step `first` to step `last` of a layer; `take` is told where it lies.
  void Add(uint64_t bytes, int first, int last, Take take);
  void AddFloats(float** buffer, int64_t count, int first, int last);
  void AddInput(ops::Activations* input, const ops::ActivationPlan& plan, int first, int last);
  void AddInputs(const Config& config, const Weights& weights, const ForwardOptions& options);
  void AddAttention(const Config& config, const Weights& weights, const ForwardOptions& options);
  void AddFeedForward(const Config& config, const Weights& weights, const ForwardOptions& options);
  void AddRest(const Config& config, const Weights& weights, const ForwardOptions& options);

  int workers_;
  memory::Lifetimes lifetimes_;
  std::vector<Take> takes_;
  uint64_t bytes_ = 0;
  std::span<std::byte> embedding_rows_;
  std::span<float> embeddings_;
};

}  // namespace sluice::model
