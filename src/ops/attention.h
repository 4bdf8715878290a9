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
#include "runtime/context.h"

namespace sluice::ops {

// How a query is turned to look at tokens from where it does not stand, because the model knows no greater
// distances. Tokens stay as they were stored, in whatever type: it is the query that turns.
struct Turns {
  void (*turn)(float* x, const float* cos, const float* sin,
               int64_t pairs) = nullptr;  // null: nothing to turn
  int64_t pairs = 0;
  // [rows, pairs], from where a row stands back to SinkView (kWindow), or to two laps (kHeavy)
  const float* back_cos = nullptr;
  const float* back_sin = nullptr;
  // [pairs], by one lap forth (kHeavy)
  const float* lap_cos = nullptr;
  const float* lap_sin = nullptr;
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
  Turns turns;
  float* weights =
      nullptr;  // [rows, n_heads, 2] or null: takes each head's maximum m and 1 / l, for AddScores
  // Null: scores stay within their tile. Else all of the batch's scores are written here, and read again in a
  // second pass: [rows, n_heads, score_tiles, 64], with score_tiles ≥ MostTiles(…)
  float* scores = nullptr;
  int64_t score_tiles = 0;
};

// One row of a batch: whose past it sees, and where it stands in it. The row's own key is already in the
// cache.
struct AttentionRow {
  const kv::Sequence* sequence;
  int64_t position;
};

// What a model's attention needs scratch for.
struct AttentionSize {
  int group = 1;  // the most query heads that share a KV head
  int k_dim = 0;  // the largest heads
  int v_dim = 0;
  int64_t max_rows = 1;  // the most rows of a batch

  // Rows of a batch that a worker takes at once, so that they share what is read of the cache: those of about
  // 64 queries. With more, what a tile costs but once is little already, and their outputs outgrow the
  // caches.
  int rows() const { return static_cast<int>(std::clamp<int64_t>(max_rows, 1, std::max(1, 64 / group))); }
  static constexpr int kMostRows = 64;
};

// Per-worker scratch.
class AttentionScratch {
 public:
  static uint64_t Bytes(int workers, const AttentionSize& size);
  AttentionScratch() = default;
  // `memory`: Bytes(…), aligned to a cache line; outlives this.
  AttentionScratch(const AttentionSize& size, std::span<std::byte> memory);

  const AttentionSize& size() const { return size_; }
  struct State {
    float* m;  // [rows, group]
    float* l;  // [rows, group]
    float* o;  // [rows, group, v_dim]
  };
  State chunk(int worker) const { return At(worker, 0); }
  State merged(int worker) const { return At(worker, 1); }
  // Places for one row's queries, turned or rotated: [group, k_dim] each, all equally far apart. There are as
  // many as rows, and at least kQueries, the most that one row may need.
  static constexpr int kQueries = 4;
  float* query(int worker, int which) const;
  // AttentionRowsArgs::scratch; null where a worker takes one row only.
  float* shared(int worker) const;
  // State in which one tile's weights are found, o: [group, 64].
  State tile(int worker) const;

 private:
  State At(int worker, int which) const;
  AttentionSize size_;
  std::span<float> floats_;
};

// Tiles that one query may see, of a context of so many tokens.
inline int64_t MostTiles(int64_t context_length) {
  // There are at most four stretches of visible tokens, and a tile that two of them share counts for each.
  return context_length / kernels::kTileSlots + 2 * AttentionScratch::kQueries;
}

// q: [rows, n_heads · k_dim] → out: [rows, n_heads · v_dim].
void Attention(const runtime::Context& context, const AttentionScratch& scratch, const AttentionSpec& spec,
               kv::Cache& cache, std::span<const AttentionRow> rows, const float* q, float* out);

// kHeavy: adds to the scores under way of each row's sequence the attention that the row pays to every token:
// a second pass over queries and keys, by the m and l that Attention has left in spec.weights. Sums go by the
// order of rows, and of heads within a row.
void AddScores(const runtime::Context& context, const AttentionScratch& scratch, const AttentionSpec& spec,
               kv::Cache& cache, std::span<const AttentionRow> rows, const float* q);

// Stores one row's keys [n_kv_heads, k_dim] and values [n_kv_heads, v_dim] at its position.
void StoreKeyValue(const runtime::Context& context, kv::Cache& cache, int layer, const AttentionRow& row,
                   const float* k, const float* v);

}  // namespace sluice::ops
