#include "ops/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/math.h"
#include "kernels/kv_rows.h"
#include "ops/attention_spans.h"
#include "ops/rotation.h"

namespace sluice::ops {

namespace {

// Rounded to whole cache lines.
size_t Floats(int heads, int width) {
  return (static_cast<size_t>(heads) * static_cast<size_t>(width) + 15) / 16 * 16;
}
size_t StateFloats(const AttentionSize& size) { return Floats(size.rows() * size.group, 2 + size.v_dim); }
int QueryPlaces(const AttentionSize& size) { return std::max(size.rows(), AttentionScratch::kQueries); }
size_t QueryFloats(const AttentionSize& size) { return Floats(size.group, size.k_dim); }
size_t TileFloats(const AttentionSize& size) { return Floats(size.group, 2 + kv::kPagePositions); }
size_t SharedFloats(const AttentionSize& size) {
  if (size.rows() == 1) return 0;
  return kernels::AttentionRowsScratch(size.rows() * size.group, size.k_dim, size.v_dim);
}
size_t WorkerFloats(const AttentionSize& size) {
  return 2 * StateFloats(size) + static_cast<size_t>(QueryPlaces(size)) * QueryFloats(size) +
         TileFloats(size) + SharedFloats(size);
}

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

int KvHead(const AttentionSpec& spec, const Query& query) {
  return query.first_head / (spec.n_heads / spec.n_kv_heads);
}

// One tile of a query's: the visible slots of `span` in [first, last).
kernels::AttentionTileArgs TileArgs(const AttentionSpec& spec, kv::Cache& cache, const Query& query,
                                    const Span& span, int64_t first, int64_t last,
                                    const AttentionScratch::State& state, const TileOptions& options = {}) {
  const float* const values = options.values;
  const int kv_head = KvHead(spec, query);
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

// Where the scores of a query begin (AttentionSpec::scores), and of how many floats a tile's are.
float* ScoresOf(const AttentionSpec& spec, const Query& query) {
  return spec.scores + (query.index * spec.n_heads + query.first_head) * spec.score_tiles * kTile;
}
int64_t TileScores(const Query& query) { return query.heads * kTile; }

// The first of two passes: a query's scores, to memory.
void ScoreQuery(const runtime::Context& context, const AttentionScratch& scratch, int worker,
                const AttentionSpec& spec, kv::Cache& cache, const Query& query) {
  const Spans spans = SpansOf(spec, cache, query, scratch, worker);
  float* scores = ScoresOf(spec, query);
  const auto tile = [&](const Span& span, int64_t first, int64_t last) {
    context.kernels->attention_scores(
        TileArgs(spec, cache, query, span, first, last, {}, {.scores = scores}));
    scores += TileScores(query);
  };
  const auto nothing = [](int) {};
  WalkSpans(spans.all(), nothing, tile, nothing);
}

// One tile of several rows, whose first slot is `start`.
void AttendTile(const runtime::Context& context, const AttentionSpec& spec, kv::Cache& cache,
                const Block& block, const BlockSpans& spans, const kernels::AttentionTileArgs& tile,
                int64_t start, float* scratch, bool new_queries) {
  std::array<kernels::VisibleSlots, AttentionSize::kMostRows> visible;
  for (int r = 0; r < block.rows; ++r) {
    const Span& span = spans.row[static_cast<size_t>(r)];
    const int64_t first = std::clamp<int64_t>(span.first - start, 0, kTile);
    const int64_t last = std::clamp<int64_t>(span.last - start, first, kTile);
    visible[static_cast<size_t>(r)] = {static_cast<int>(first), static_cast<int>(last),
                                       start + first - span.position};
  }
  const std::byte* next_values = nullptr;
  if (tile.next != nullptr) {
    const int32_t page = block.first.row->sequence->page(spec.layer, start / kTile + 1);
    next_values = cache.Values(spec.layer, page, KvHead(spec, block.first));
  }
  context.kernels->attention_rows({.tile = tile,
                                   .rows = block.rows,
                                   .q_row_stride = spans.q_stride,
                                   .visible = visible.data(),
                                   .scratch = scratch,
                                   .new_queries = new_queries,
                                   .next_values = next_values});
}

// What has been summed up of a query → its output.
void Finish(const AttentionSpec& spec, const kv::Cache& cache, const Query& query,
            const AttentionScratch::State& total, float* out) {
  for (int h = 0; h < query.heads; ++h) {
    const float inverse = 1.0f / total.l[h];
    if (spec.weights != nullptr) {
      float* const weights = spec.weights + (query.index * spec.n_heads + query.first_head + h) * 2;
      weights[0] = total.m[h];
      weights[1] = inverse;
    }
    const float* o = total.o + h * spec.v_dim;
    for (int i = 0; i < spec.v_dim; ++i) out[h * spec.v_dim + i] = o[i] * inverse;
    if (cache.rotates_values()) RotateBack(out + h * spec.v_dim, spec.v_dim);
  }
}

// All of a block's attention, or what follows ScoreQuery.
void AttendBlock(const runtime::Context& context, const AttentionScratch& scratch, int worker,
                 const AttentionSpec& spec, kv::Cache& cache, const Block& block, float* out) {
  BlockSpans spans;
  MakeSpans(spec, cache, block, scratch, worker, spans);
  const AttentionScratch::State total = scratch.merged(worker);
  AttentionScratch::State state = total;
  float* scores = spec.scores == nullptr ? nullptr : ScoresOf(spec, block.first);
  bool new_queries = true;
  const auto begin = [&](int chunk) {
    state = chunk == 0 ? total : scratch.chunk(worker);
    Reset(state, block.queries(), spec.v_dim);
  };
  const auto tile = [&](const Span& span, int64_t first, int64_t last) {
    const TileOptions options{.scores = scores, .only_values = scores != nullptr};
    const auto args = TileArgs(spec, cache, block.first, span, first, last, state, options);
    if (block.rows > 1) {
      AttendTile(context, spec, cache, block, spans, args, first / kTile * kTile, scratch.shared(worker),
                 new_queries);
    } else {
      context.kernels->attention_tile(args);
    }
    new_queries = false;
    if (scores != nullptr) scores += TileScores(block.first);
  };
  const auto end = [&](int chunk) {
    if (chunk > 0) Merge(*context.kernels, total, state, block.queries(), spec.v_dim);
  };
  WalkSpans(spans.all.all(), begin, tile, end);
  for (int r = 0; r < block.rows; ++r) {
    const Query query = block.row(spec, r);
    const int done = r * query.heads;
    Finish(spec, cache, query, {total.m + done, total.l + done, total.o + done * spec.v_dim},
           out + (query.index * spec.n_heads + query.first_head) * spec.v_dim);
  }
}

}  // namespace

uint64_t AttentionScratch::Bytes(int workers, const AttentionSize& size) {
  return static_cast<uint64_t>(workers) * WorkerFloats(size) * sizeof(float);
}

AttentionScratch::AttentionScratch(const AttentionSize& size, std::span<std::byte> memory)
    : size_(size), floats_(reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)) {}

AttentionScratch::State AttentionScratch::At(int worker, int which) const {
  float* const base = floats_.data() + static_cast<size_t>(worker) * WorkerFloats(size_) +
                      static_cast<size_t>(which) * StateFloats(size_);
  const int queries = size_.rows() * size_.group;
  return {base, base + queries, base + 2 * queries};
}

float* AttentionScratch::query(int worker, int which) const {
  return At(worker, 2).m + static_cast<size_t>(which) * QueryFloats(size_);
}

AttentionScratch::State AttentionScratch::tile(int worker) const {
  float* const base = query(worker, QueryPlaces(size_));
  return {base, base + size_.group, base + 2 * size_.group};
}

float* AttentionScratch::shared(int worker) const {
  return size_.rows() == 1 ? nullptr : tile(worker).m + TileFloats(size_);
}

void Attention(const runtime::Context& context, const AttentionScratch& scratch, const AttentionSpec& spec,
               kv::Cache& cache, std::span<const AttentionRow> rows, const float* q, float* out) {
  // A work item is some rows and the query heads of one KV head, so that its keys and values are read once
  // for them. With fewer items than workers, rows and then groups are halved.
  const auto batch = static_cast<int64_t>(rows.size());
  int heads_per_item = spec.n_heads / spec.n_kv_heads;
  int64_t rows_per_item = spec.scores != nullptr ? 1 : scratch.size().rows();
  const auto stretches = [&] { return (batch + rows_per_item - 1) / rows_per_item; };
  const auto too_few = [&] { return stretches() * (spec.n_heads / heads_per_item) < context.pool->size(); };
  while (rows_per_item > 1 && too_few()) rows_per_item = (rows_per_item + 1) / 2;
  while (heads_per_item % 2 == 0 && too_few()) heads_per_item /= 2;
  const int64_t heads_per_row = spec.n_heads / heads_per_item;
  // Calls fn(query, row after the item's last, worker), with the query of its first row.
  const auto for_each_item = [&](auto&& fn) {
    context.pool->ParallelFor(stretches() * heads_per_row, 1, [&](int64_t item, int64_t, int worker) {
      // A worker's items are neighbours: they see the same keys and values, as long as those of one KV head.
      const int64_t r = item % stretches() * rows_per_item;
      const int first_head = static_cast<int>(item / stretches()) * heads_per_item;
      fn(Query{.row = &rows[static_cast<size_t>(r)],
               .index = r,
               .q = q + (r * spec.n_heads + first_head) * spec.k_dim,
               .first_head = first_head,
               .heads = heads_per_item},
         std::min(batch, r + rows_per_item), worker);
    });
  };
  if (spec.scores != nullptr) {
    for_each_item([&](const Query& query, int64_t, int worker) {
      ScoreQuery(context, scratch, worker, spec, cache, query);
    });
  }
  for_each_item([&](const Query& query, int64_t end, int worker) {
    Block block{query, 0};
    for (; block.first.index < end; block = {block.row(spec, block.rows), 0}) {
      const int64_t first = block.first.index;
      do ++block.rows;
      while (first + block.rows < end && SeeAlike(spec, cache, rows[static_cast<size_t>(first)],
                                                  rows[static_cast<size_t>(first + block.rows)]));
      AttendBlock(context, scratch, worker, spec, cache, block, out);
    }
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
  const Spans spans = SpansOf(spec, cache, query, scratch, worker);
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
      Rotate(rotated, n);
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
