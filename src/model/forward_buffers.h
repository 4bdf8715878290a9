// ForwardBuffers: the activations of one batch on its way through the layers, all in one arena. What they take is counted
// by the same walk that takes them, so that a plan and what is used cannot differ.
//
// Belongs to one Forward; its workers write disjoint rows.
#pragma once

#include <cstdint>
#include <span>

#include "memory/arena.h"
#include "model/config.h"
#include "model/weights.h"
#include "ops/activations.h"
#include "ops/attention.h"
#include "ops/linear.h"

namespace sluice::model {

// Rows whose logits are computed together; more rows that want logits take several rounds.
inline constexpr int64_t kLogitRows = 16;

struct FloatBuffers {
  float* hidden;       // [max_batch, d_model], the residual stream
  float* normed;       // [max_batch, d_model]
  float* ffn_normed;   // [max_batch, d_model], of parallel blocks
  float* branch;       // [max_batch, d_model]
  float* q;            // [max_batch, n_heads · k_dim]
  float* k;            // [max_batch, n_kv_heads · k_dim]
  float* v;            // [max_batch, n_kv_heads · v_dim]
  float* attended;     // [max_batch, n_heads · v_dim]
  float* ffn;          // [max_batch, d_ff]
  float* up;           // [max_batch, d_ff]
  float* cos[2];       // [max_batch, pairs], full and sliding layers
  float* sin[2];
  float* back_cos[2];  // [max_batch, pairs], ops::Turns
  float* back_sin[2];
  float* lap_cos[2];   // [pairs]
  float* lap_sin[2];
  float* attention_weights;  // [max_batch, n_heads, 2], AttentionSpec::weights
  float* logits;       // [kLogitRows, vocab_size]
};

struct ForwardBuffers : FloatBuffers {
  // Takes Bytes(…) from the arena.
  ForwardBuffers(const Config& config, const Weights& weights, int64_t max_batch, int workers, memory::Arena& arena);
  static uint64_t Bytes(const Config& config, const Weights& weights, int64_t max_batch, int workers);

  // Room for a row of either table of embeddings, as the file stores it: one for each worker.
  std::span<std::byte> embedding_row(int worker) const {
    const size_t size = embedding_rows_.size() / static_cast<size_t>(workers_);
    return embedding_rows_.subspan(static_cast<size_t>(worker) * size, size);
  }

  ops::Activations input;
  ops::WorkerScratch scratch;
  ops::AttentionScratch attention;

 private:
  int workers_;
  std::span<std::byte> embedding_rows_;
};

}  // namespace sluice::model
