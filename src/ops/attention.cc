#include "ops/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/math.h"
#include "kernels/kv_rows.h"
#include "ops/hadamard.h"

namespace sluice::ops {

namespace {

constexpr int64_t kChunkPositions = 512;
constexpr int64_t kTile = kv::kPagePositions;
static_assert(kChunkPositions % kTile == 0);

// Rounded to whole cache lines.
size_t Floats(int heads, int width) {
  return (static_cast<size_t>(heads) * static_cast<size_t>(width) + 15) / 16 * 16;
}
size_t StateFloats(int group, int v_dim) { return Floats(group, 2 + v_dim); }
size_t WorkerFloats(int group, int k_dim, int v_dim) {
  return 2 * StateFloats(group, v_dim) + AttentionScratch::kQueries * Floats(group, k_dim) +
         StateFloats(group, kv::kPagePositions);
}

// Query heads [first_head, first_head + heads) of one row, which share a KV head.
struct Query {
  const AttentionRow* row;
  int64_t index;  // of the row in the batch
  const float* q;
  int first_head;
  int heads;
};

// Visible slots [first, last), and the query that looks at them: what it is and where it stands.
struct Span {
  int64_t first, last;
  const float* q;
  int64_t position;
};

void Reset(const AttentionScratch::State& state, int heads, int v_dim) {
  std::fill_n(state.m, heads, -std::numeric_limits<float>::infinity());
  std::fill_n(state.l, heads, 0.0f);
  std::fill_n(state.o, heads * v_dim, 0.0f);
}

// What TileArgs is to do otherwise.
struct TileOptions {
  float* scores = nullptr;        // AttentionTileArgs::scores
  bool only_values = false;       // which are all that is read, with scores that are there already
  const float* values = nullptr;  // [64, v_dim], in place of those of the cache
};

// One tile of a query's: the visible slots of `span` in [first, last).
kernels::AttentionTileArgs TileArgs(const AttentionSpec& spec, kv::Cache& cache, const Query& query,
                                    const Span& span, int64_t first, int64_t last,
                                    const AttentionScratch::State& state, const TileOptions& options = {}) {
  const float* const values = options.values;
  const int kv_head = query.first_head / (spec.n_heads / spec.n_kv_heads);
  const int64_t start = first / kTile * kTile;
  const int32_t page = query.row->sequence->page(spec.layer, start / kTile);
  const std::byte* next = nullptr;
  if (start + kTile < span.last && values == nullptr) {
    const int32_t next_page = query.row->sequence->page(spec.layer, start / kTile + 1);
    next = options.only_values ? cache.Values(spec.layer, next_page, kv_head)
                               : cache.Keys(spec.layer, next_page, kv_head);
  }
  return {.q = span.q,
          .q_stride = spec.k_dim,
          .heads = query.heads,
          .k_dim = spec.k_dim,
          .v_dim = spec.v_dim,
          .k_type = cache.config().k_type,
          .v_type = values != nullptr ? kv::KvType::kF32 : cache.config().v_type,
          .k = cache.Keys(spec.layer, page, kv_head),
          .k_row_bytes = cache.k_row_bytes(spec.layer),
          .v = values != nullptr ? reinterpret_cast<const std::byte*>(values)
                                 : cache.Values(spec.layer, page, kv_head),
          .v_row_bytes = values != nullptr ? kTile * sizeof(float) : cache.v_row_bytes(spec.layer),
          .first = static_cast<int>(first - start),
          .last = static_cast<int>(last - start),
          .scale = spec.scale,
          .softcap = spec.softcap,
          .alibi_slopes = spec.alibi_slopes == nullptr ? nullptr : spec.alibi_slopes + query.first_head,
          .first_distance = first - span.position,
          .m = state.m,
          .l = state.l,
          .o = state.o,
          .scores = options.scores,
          .next = next};
}

// Calls fn(first, last) for the parts of [first, last) that lie in one tile.
template <typename F>
void ForEachTile(int64_t first, int64_t last, F&& fn) {
  for (int64_t from = first; from < last;) {
    const int64_t to = std::min(last, (from / kTile + 1) * kTile);
    fn(from, to);
    from = to;
  }
}

// merged ← merged ⊕ chunk, both relative to their own maximum.
void Merge(const kernels::Kernels& kernels, const AttentionScratch::State& merged,
           const AttentionScratch::State& chunk, int heads, int v_dim) {
  for (int h = 0; h < heads; ++h) {
    const float m = std::max(merged.m[h], chunk.m[h]);
    const float a = Exp(merged.m[h] - m);
    const float b = Exp(chunk.m[h] - m);
    merged.m[h] = m;
    merged.l[h] = std::fma(merged.l[h], a, chunk.l[h] * b);
    kernels.attention_merge(merged.o + h * v_dim, a, chunk.o + h * v_dim, b, v_dim);
  }
}

// What a query sees, by ascending slots.
struct Spans {
  std::array<Span, AttentionScratch::kQueries> span;
  int count = 0;
  std::span<const Span> all() const { return std::span(span).first(static_cast<size_t>(count)); }
  void Add(int64_t first, int64_t last, const float* q, int64_t position) {
    if (first < last) span[static_cast<size_t>(count++)] = {first, last, q, position};
  }
};

// The versions of one query that its spans need, made in the scratch: turned, and rotated where keys are.
class Queries {
 public:
  Queries(const AttentionScratch& scratch, int worker, const AttentionSpec& spec, const kv::Cache& cache,
          const Query& query)
      : scratch_(scratch), worker_(worker), spec_(spec), rotates_(cache.rotates_keys()), query_(query) {}

  const float* AsItIs() { return rotates_ ? Rotate(Copy(query_.q)) : query_.q; }
  // Turned back, and then forth by a lap if `lap`.
  const float* Back(bool lap) {
    if (spec_.turns.turn == nullptr) return AsItIs();
    const Turns& turns = spec_.turns;
    float* const q = Copy(query_.q);
    Turn(q, turns.back_cos + query_.index * turns.pairs, turns.back_sin + query_.index * turns.pairs);
    if (lap) Turn(q, turns.lap_cos, turns.lap_sin);
    return rotates_ ? Rotate(q) : q;
  }
  const float* ByALap() {
    if (spec_.turns.turn == nullptr) return AsItIs();
    float* const q = Copy(query_.q);
    Turn(q, spec_.turns.lap_cos, spec_.turns.lap_sin);
    return rotates_ ? Rotate(q) : q;
  }

 private:
  float* Copy(const float* q) {
    float* const copy = scratch_.query(worker_, used_++);
    std::copy_n(q, query_.heads * spec_.k_dim, copy);
    return copy;
  }
  void Turn(float* q, const float* cos, const float* sin) {
    for (int h = 0; h < query_.heads; ++h) spec_.turns.turn(q + h * spec_.k_dim, cos, sin, spec_.turns.pairs);
  }
  float* Rotate(float* q) {
    for (int h = 0; h < query_.heads; ++h) Hadamard(q + h * spec_.k_dim, spec_.k_dim);
    return q;
  }

  const AttentionScratch& scratch_;
  const int worker_;
  const AttentionSpec& spec_;
  const bool rotates_;
  const Query& query_;
  int used_ = 0;
};

// kHeavy: the slots of a layer by laps (kv/heavy_set.h). Its own lap and the one before a query sees at true
// distances, those before them as if two laps lay between.
Spans HeavySpans(const AttentionSpec& spec, const kv::Cache& cache, const Query& query, Queries& queries) {
  const kv::Sequence& sequence = *query.row->sequence;
  const int64_t position = query.row->position;
  const int64_t end = sequence.slot(position) + 1;
  const int64_t lap = cache.heavy().lap();
  const int64_t own = position / lap;
  Spans spans;
  if (own < 2) {
    spans.Add(0, end, queries.AsItIs(), position);
    return spans;
  }
  const std::span<const int32_t> positions =
      sequence.set().positions(spec.layer).first(static_cast<size_t>(end));
  const auto slot_of = [&](int64_t first_position) {
    return std::ranges::lower_bound(positions, static_cast<int32_t>(first_position)) - positions.begin();
  };
  const int64_t first_lap = slot_of(lap), previous = slot_of((own - 1) * lap), newest = slot_of(own * lap);
  spans.Add(0, first_lap, queries.Back(false), position);
  if (own > 2) spans.Add(first_lap, previous, queries.Back(true), position);
  spans.Add(previous, newest, queries.ByALap(), position);
  spans.Add(newest, end, queries.AsItIs(), position);
  return spans;
}

Spans SpansOf(const AttentionSpec& spec, const kv::Cache& cache, const Query& query, Queries& queries) {
  if (query.row->sequence->keeps_heavy()) return HeavySpans(spec, cache, query, queries);
  const int64_t position = query.row->position;
  const int64_t first = spec.view.window > 0 ? std::max<int64_t>(0, position + 1 - spec.view.window) : 0;
  Spans spans;
  if (first <= spec.view.sinks) {
    spans.Add(0, position + 1, queries.AsItIs(), position);
  } else {
    if (spec.view.sinks > 0)
      spans.Add(0, spec.view.sinks, queries.Back(false), SinkView(spec.view, position));
    spans.Add(first, position + 1, queries.AsItIs(), position);
  }
  return spans;
}

// What a query sees, in the order in which it is worked on: chunk by chunk, within it span by span, tile by
// tile. Calls begin(chunk) for each chunk with something to see, counted from 0, tile(span, first, last) for
// what it sees of each tile, and end(chunk).
template <typename Begin, typename Tile, typename End>
void WalkSpans(std::span<const Span> spans, Begin&& begin, Tile&& tile, End&& end) {
  const int64_t first = spans.front().first / kChunkPositions * kChunkPositions;
  int chunk = 0;
  for (int64_t start = first; start < spans.back().last; start += kChunkPositions) {
    bool seen = false;
    for (const Span& span : spans) {
      const int64_t from = std::max(span.first, start);
      const int64_t to = std::min(span.last, start + kChunkPositions);
      if (from >= to) continue;
      if (!seen) begin(chunk);
      seen = true;
      ForEachTile(from, to, [&](int64_t a, int64_t b) { tile(span, a, b); });
    }
    if (seen) end(chunk++);
  }
}

// Where the scores of a query begin (AttentionSpec::scores), and of how many floats a tile's are.
float* ScoresOf(const AttentionSpec& spec, const Query& query) {
  return spec.scores + (query.index * spec.n_heads + query.first_head) * spec.score_tiles * kTile;
}
int64_t TileScores(const Query& query) { return query.heads * kTile; }

// The first of two passes: a query's scores, to memory.
void ScoreQuery(const runtime::Context& context, const AttentionScratch& scratch, int worker,
                const AttentionSpec& spec, kv::Cache& cache, const Query& query) {
  Queries queries(scratch, worker, spec, cache, query);
  const Spans spans = SpansOf(spec, cache, query, queries);
  float* scores = ScoresOf(spec, query);
  const auto tile = [&](const Span& span, int64_t first, int64_t last) {
    context.kernels->attention_scores(
        TileArgs(spec, cache, query, span, first, last, {}, {.scores = scores}));
    scores += TileScores(query);
  };
  const auto nothing = [](int) {};
  WalkSpans(spans.all(), nothing, tile, nothing);
}

// All of a query's attention, or what follows ScoreQuery.
void AttendQuery(const runtime::Context& context, const AttentionScratch& scratch, int worker,
                 const AttentionSpec& spec, kv::Cache& cache, const Query& query, float* out) {
  Queries queries(scratch, worker, spec, cache, query);
  const Spans spans = SpansOf(spec, cache, query, queries);
  const AttentionScratch::State total = scratch.merged(worker);
  AttentionScratch::State state = total;
  float* scores = spec.scores == nullptr ? nullptr : ScoresOf(spec, query);
  const auto begin = [&](int chunk) {
    state = chunk == 0 ? total : scratch.chunk(worker);
    Reset(state, query.heads, spec.v_dim);
  };
  const auto tile = [&](const Span& span, int64_t first, int64_t last) {
    const TileOptions options{.scores = scores, .only_values = scores != nullptr};
    context.kernels->attention_tile(TileArgs(spec, cache, query, span, first, last, state, options));
    if (scores != nullptr) scores += TileScores(query);
  };
  const auto end = [&](int chunk) {
    if (chunk > 0) Merge(*context.kernels, total, state, query.heads, spec.v_dim);
  };
  WalkSpans(spans.all(), begin, tile, end);
  for (int h = 0; h < query.heads; ++h) {
    const float inverse = 1.0f / total.l[h];
    if (spec.weights != nullptr) {
      float* const weights = spec.weights + (query.index * spec.n_heads + query.first_head + h) * 2;
      weights[0] = total.m[h];
      weights[1] = inverse;
    }
    const float* o = total.o + h * spec.v_dim;
    for (int i = 0; i < spec.v_dim; ++i) out[h * spec.v_dim + i] = o[i] * inverse;
    if (cache.rotates_values()) Hadamard(out + h * spec.v_dim, spec.v_dim);
  }
}

}  // namespace

uint64_t AttentionScratch::Bytes(int workers, int group, int k_dim, int v_dim) {
  return static_cast<uint64_t>(workers) * WorkerFloats(group, k_dim, v_dim) * sizeof(float);
}

AttentionScratch::AttentionScratch(int group, int k_dim, int v_dim, std::span<std::byte> memory)
    : group_(group),
      state_floats_(StateFloats(group, v_dim)),
      query_floats_(Floats(group, k_dim)),
      worker_floats_(WorkerFloats(group, k_dim, v_dim)),
      floats_(reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)) {}

AttentionScratch::State AttentionScratch::At(int worker, int which) const {
  float* base = floats_.data() + static_cast<size_t>(worker) * worker_floats_ +
                static_cast<size_t>(which) * state_floats_;
  return {base, base + group_, base + 2 * group_};
}

float* AttentionScratch::query(int worker, int which) const {
  return At(worker, 2).m + static_cast<size_t>(which) * query_floats_;
}

AttentionScratch::State AttentionScratch::tile(int worker) const {
  float* const base = query(worker, kQueries);
  return {base, base + group_, base + 2 * group_};
}

void Attention(const runtime::Context& context, const AttentionScratch& scratch, const AttentionSpec& spec,
               kv::Cache& cache, std::span<const AttentionRow> rows, const float* q, float* out) {
  // A work item is one row and the query heads of one KV head, so that its keys and values are read once.
  // With fewer items than workers, groups are halved.
  const int group = spec.n_heads / spec.n_kv_heads;
  int heads_per_item = group;
  while (heads_per_item % 2 == 0 &&
         static_cast<int64_t>(rows.size()) * (spec.n_heads / heads_per_item) < context.pool->size()) {
    heads_per_item /= 2;
  }
  const int64_t items_per_row = spec.n_heads / heads_per_item;
  const auto for_each_query = [&](auto&& fn) {
    context.pool->ParallelFor(
        static_cast<int64_t>(rows.size()) * items_per_row, 1, [&](int64_t item, int64_t, int worker) {
          const int64_t r = item / items_per_row;
          const int first_head = static_cast<int>(item % items_per_row) * heads_per_item;
          fn(Query{.row = &rows[static_cast<size_t>(r)],
                   .index = r,
                   .q = q + (r * spec.n_heads + first_head) * spec.k_dim,
                   .first_head = first_head,
                   .heads = heads_per_item},
             worker);
        });
  };
  if (spec.scores != nullptr) {
    for_each_query(
        [&](const Query& query, int worker) { ScoreQuery(context, scratch, worker, spec, cache, query); });
  }
  for_each_query([&](const Query& query, int worker) {
    AttendQuery(context, scratch, worker, spec, cache, query,
                out + (query.index * spec.n_heads + query.first_head) * spec.v_dim);
  });
}

namespace {

// 64 values of which the i-th is 1 at i: a tile's outputs with them are its weights.
struct Identity {
  alignas(64) float value[kTile][kTile] = {};
  constexpr Identity() {
    for (int i = 0; i < kTile; ++i) value[i][i] = 1;
  }
};
constexpr Identity kIdentity;

// What one row's heads pay to the slots of one tile, into `scores` [64].
void AddRowScores(const runtime::Context& context, const AttentionScratch& scratch, int worker,
                  const AttentionSpec& spec, kv::Cache& cache, const Query& query, int64_t tile,
                  std::span<float> scores) {
  Queries queries(scratch, worker, spec, cache, query);
  const Spans spans = SpansOf(spec, cache, query, queries);
  const AttentionScratch::State state = scratch.tile(worker);
  const float* const weights = spec.weights + (query.index * spec.n_heads + query.first_head) * 2;
  Reset(state, query.heads, kTile);
  for (int h = 0; h < query.heads; ++h)
    state.m[h] = weights[h * 2];  // nothing is above it: what comes out is exp(s − m)
  AttentionSpec one = spec;
  one.v_dim = kTile;
  for (const Span& span : spans.all()) {
    const int64_t from = std::max(span.first, tile * kTile), to = std::min(span.last, (tile + 1) * kTile);
    if (from >= to) continue;
    context.kernels->attention_tile(
        TileArgs(one, cache, query, span, from, to, state, {.values = &kIdentity.value[0][0]}));
  }
  for (int h = 0; h < query.heads; ++h) {
    for (int64_t i = 0; i < kTile; ++i)
      scores[static_cast<size_t>(i)] =
          std::fma(state.o[h * kTile + i], weights[h * 2 + 1], scores[static_cast<size_t>(i)]);
  }
}

}  // namespace

void AddScores(const runtime::Context& context, const AttentionScratch& scratch, const AttentionSpec& spec,
               kv::Cache& cache, std::span<const AttentionRow> rows, const float* q) {
  const int group = spec.n_heads / spec.n_kv_heads;
  const int64_t tiles = cache.heavy().slots / kTile;
  context.pool->ParallelFor(tiles, 1, [&](int64_t tile, int64_t, int worker) {
    for (size_t r = 0; r < rows.size(); ++r) {
      const kv::Sequence& sequence = *rows[r].sequence;
      if (sequence.slot(rows[r].position) < tile * kTile) continue;
      const std::span<float> scores = sequence.set().scores(spec.layer, sequence.scores_under_way());
      for (int head = 0; head < spec.n_heads; head += group) {
        const Query query{.row = &rows[r],
                          .index = static_cast<int64_t>(r),
                          .q = q + (static_cast<int64_t>(r) * spec.n_heads + head) * spec.k_dim,
                          .first_head = head,
                          .heads = group};
        AddRowScores(context, scratch, worker, spec, cache, query, tile,
                     scores.subspan(static_cast<size_t>(tile * kTile), static_cast<size_t>(kTile)));
      }
    }
  });
}

void StoreKeyValue(const runtime::Context& context, kv::Cache& cache, int layer, const AttentionRow& row,
                   const float* k, const float* v) {
  // x[n] → the row at `slot`.
  const auto store = [&](kv::KvType type, bool rotate, const float* x, int n, std::byte* slot) {
    float rotated[kernels::kMaxHeadDim];
    if (rotate) {
      std::copy_n(x, n, rotated);
      Hadamard(rotated, n);
      x = rotated;
    }
    kernels::StoreKvRow(*context.kernels, type, x, n, slot);
  };
  const kv::LayerShape& shape = cache.config().layers[static_cast<size_t>(layer)];
  const int64_t at = row.sequence->slot(row.position);
  const int32_t page = row.sequence->page(layer, at / kTile);
  const size_t slot = static_cast<size_t>(at % kTile);
  for (int head = 0; head < shape.n_kv_heads; ++head) {
    store(cache.config().k_type, cache.rotates_keys(), k + head * shape.k_dim, shape.k_dim,
          cache.Keys(layer, page, head) + slot * cache.k_row_bytes(layer));
    store(cache.config().v_type, cache.rotates_values(), v + head * shape.v_dim, shape.v_dim,
          cache.Values(layer, page, head) + slot * cache.v_row_bytes(layer));
  }
}

}  // namespace sluice::ops
