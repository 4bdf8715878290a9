// Attention over the KV cache, with an online softmax.
//
// The arithmetic is a function of positions only (docs/arithmetic.md, "Attention"): the visible keys are
// walked in chunks of 512 absolute positions, each starting from a fresh (m, l, o), in tiles of 64 within;
// chunks are merged in order. What is visible is a function of positions, too. So how a prompt is cut into
// batches, who else is in the batch, and how many workers there are, change nothing. Scratch is constant in
// the context length. Where the cache rotates keys or values (kv::CacheConfig::rotate), queries are rotated
// on their way in and outputs on their way out: callers see none of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/kernels.h"
#include "kv/sequence.h"
#include "memory/arena.h"
#include "runtime/context.h"

namespace sluice::ops {

// How a query is turned back to look at sinks from where the window began to move (kv::Overflow::kWindow):
// the model knows no greater distances. Sinks stay as they were stored, in whatever type: it is the query
// that turns.
struct TurnBack {
  void (*turn)(float* x, const float* cos, const float* sin,
               int64_t pairs) = nullptr;  // null: nothing to turn
  const float* cos = nullptr;  // [rows, pairs], of the angle from a row's position back to SinkView(…)
  const float* sin = nullptr;
  int64_t pairs = 0;
};

// From where a query at `position` sees the sinks.
inline int64_t SinkView(const kv::Cache::View& view, int64_t position) {
  return view.sinks == 0 ? position : std::min(position, view.sinks + view.window - 1);
}

// What one layer's attention looks like.
struct AttentionSpec {
  int layer = 0;  // in the cache
  int n_heads = 0;
  int n_kv_heads = 0;
  int k_dim = 0;
  int v_dim = 0;
  kv::Cache::View view;                 // what a query sees
  float scale = 1.0f;                   // of the scores
  float softcap = 0.0f;                 // 0 = none
  const float* alibi_slopes = nullptr;  // [n_heads] or null
  TurnBack turn_back;
};

// One row of a batch: whose past it sees, and where it stands in it. The row's own key is already in the
// cache.
struct AttentionRow {
  const kv::Sequence* sequence;
  int64_t position;
};

// Per-worker scratch, planned for a model's largest head group.
class AttentionScratch {
 public:
  // group: the most query heads that share a KV head; k_dim, v_dim: the largest heads.
  static uint64_t Bytes(int workers, int group, int k_dim, int v_dim);
  AttentionScratch(int workers, int group, int k_dim, int v_dim, memory::Arena& arena);

  struct State {
    float* m;  // [group]
    float* l;  // [group]
    float* o;  // [group, v_dim]
  };
  State chunk(int worker) const { return At(worker, 0); }
  State merged(int worker) const { return At(worker, 1); }
  float* query(int worker) const;       // [group, k_dim]
  float* sink_query(int worker) const;  // [group, k_dim]

 private:
  State At(int worker, int which) const;
  int group_;
  size_t state_floats_, query_floats_, worker_floats_;
  std::span<float> floats_;
};

// q: [rows, n_heads · k_dim] → out: [rows, n_heads · v_dim].
void Attention(const runtime::Context& context, const AttentionScratch& scratch, const AttentionSpec& spec,
               kv::Cache& cache, std::span<const AttentionRow> rows, const float* q, float* out);

// Stores one row's keys [n_kv_heads, k_dim] and values [n_kv_heads, v_dim] at its position.
void StoreKeyValue(const runtime::Context& context, kv::Cache& cache, int layer, const AttentionRow& row,
                   const float* k, const float* v);

}  // namespace sluice::ops
