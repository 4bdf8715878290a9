#include "ops/attention.h"

#include <algorithm>
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
  return 2 * StateFloats(group, v_dim) + 2 * Floats(group, k_dim);
}

// Query heads [first_head, first_head + heads) of one row, which share a KV head.
struct Query {
  const AttentionRow* row;
  int64_t index;  // of the row in the batch
  const float* q;
  int first_head;
  int heads;
};

// Visible positions [first, last), and the query that looks at them: what it is and where it stands.
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

// The visible positions of `span` in [first, last), tile by tile, into `state`.
void AttendSpan(const runtime::Context& context, const AttentionSpec& spec, kv::Cache& cache,
                const Query& query, const Span& span, int64_t first, int64_t last,
                const AttentionScratch::State& state) {
  const int kv_head = query.first_head / (spec.n_heads / spec.n_kv_heads);
  for (int64_t start = first / kTile * kTile; start < last; start += kTile) {
    const int64_t visible = std::max(first, start);
    const int32_t page = query.row->sequence->page(spec.layer, start / kTile);
    context.kernels->attention_tile(
        {.q = span.q,
         .q_stride = spec.k_dim,
         .heads = query.heads,
         .k_dim = spec.k_dim,
         .v_dim = spec.v_dim,
         .k_type = cache.config().k_type,
         .v_type = cache.config().v_type,
         .k = cache.Keys(spec.layer, page, kv_head),
         .k_row_bytes = cache.k_row_bytes(spec.layer),
         .v = cache.Values(spec.layer, page, kv_head),
         .v_row_bytes = cache.v_row_bytes(spec.layer),
         .first = static_cast<int>(visible - start),
         .last = static_cast<int>(std::min(last - start, kTile)),
         .scale = spec.scale,
         .softcap = spec.softcap,
         .alibi_slopes = spec.alibi_slopes == nullptr ? nullptr : spec.alibi_slopes + query.first_head,
         .first_distance = visible - span.position,
         .m = state.m,
         .l = state.l,
         .o = state.o});
  }
}

// merged ← merged ⊕ chunk, both relative to their own maximum.
void Merge(const AttentionScratch::State& merged, const AttentionScratch::State& chunk, int heads,
           int v_dim) {
  for (int h = 0; h < heads; ++h) {
    const float m = std::max(merged.m[h], chunk.m[h]);
    const float a = Exp(merged.m[h] - m);
    const float b = Exp(chunk.m[h] - m);
    merged.m[h] = m;
    merged.l[h] = std::fma(merged.l[h], a, chunk.l[h] * b);
    float* o = merged.o + h * v_dim;
    const float* oc = chunk.o + h * v_dim;
    for (int i = 0; i < v_dim; ++i) o[i] = std::fma(o[i], a, oc[i] * b);
  }
}

// What `query` sees. Its heads are copied to the scratch where they have to be turned or rotated.
struct Spans {
  Span span[2];
  int count;
};
Spans SpansOf(const AttentionScratch& scratch, int worker, const AttentionSpec& spec, const kv::Cache& cache,
              const Query& query) {
  const auto rotate = [&](float* q) {
    for (int h = 0; h < query.heads; ++h) Hadamard(q + h * spec.k_dim, spec.k_dim);
  };
  const float* q = query.q;
  if (cache.rotates_keys()) {
    float* const rotated = scratch.query(worker);
    std::copy_n(query.q, query.heads * spec.k_dim, rotated);
    rotate(rotated);
    q = rotated;
  }
  const int64_t position = query.row->position;
  const int64_t first = spec.view.window > 0 ? std::max<int64_t>(0, position + 1 - spec.view.window) : 0;
  if (first <= spec.view.sinks) return {{{0, position + 1, q, position}}, 1};
  const Span newest{first, position + 1, q, position};
  if (spec.view.sinks == 0) return {{newest}, 1};
  const TurnBack& back = spec.turn_back;
  const float* sink_q = q;
  if (back.turn != nullptr) {
    float* const turned = scratch.sink_query(worker);
    std::copy_n(query.q, query.heads * spec.k_dim, turned);
    for (int h = 0; h < query.heads; ++h)
      back.turn(turned + h * spec.k_dim, back.cos + query.index * back.pairs,
                back.sin + query.index * back.pairs, back.pairs);
    if (cache.rotates_keys()) rotate(turned);
    sink_q = turned;
  }
  return {{{0, spec.view.sinks, sink_q, SinkView(spec.view, position)}, newest}, 2};
}

void AttendQuery(const runtime::Context& context, const AttentionScratch& scratch, int worker,
                 const AttentionSpec& spec, kv::Cache& cache, const Query& query, float* out) {
  const Spans spans = SpansOf(scratch, worker, spec, cache, query);
  const AttentionScratch::State total = scratch.merged(worker);
  const int64_t first = spans.span[0].first / kChunkPositions * kChunkPositions;
  const int64_t last = spans.span[spans.count - 1].last;
  for (int64_t start = first; start < last; start += kChunkPositions) {
    const AttentionScratch::State state = start == first ? total : scratch.chunk(worker);
    bool seen = false;
    for (int i = 0; i < spans.count; ++i) {
      const int64_t from = std::max(spans.span[i].first, start);
      const int64_t to = std::min(spans.span[i].last, start + kChunkPositions);
      if (from >= to) continue;
      if (!seen) Reset(state, query.heads, spec.v_dim);
      seen = true;
      AttendSpan(context, spec, cache, query, spans.span[i], from, to, state);
    }
    if (seen && start != first) Merge(total, state, query.heads, spec.v_dim);
  }
  for (int h = 0; h < query.heads; ++h) {
    const float inverse = 1.0f / total.l[h];
    const float* o = total.o + h * spec.v_dim;
    for (int i = 0; i < spec.v_dim; ++i) out[h * spec.v_dim + i] = o[i] * inverse;
    if (cache.rotates_values()) Hadamard(out + h * spec.v_dim, spec.v_dim);
  }
}

}  // namespace

uint64_t AttentionScratch::Bytes(int workers, int group, int k_dim, int v_dim) {
  return static_cast<uint64_t>(workers) * WorkerFloats(group, k_dim, v_dim) * sizeof(float);
}

AttentionScratch::AttentionScratch(int workers, int group, int k_dim, int v_dim, memory::Arena& arena)
    : group_(group),
      state_floats_(StateFloats(group, v_dim)),
      query_floats_(Floats(group, k_dim)),
      worker_floats_(WorkerFloats(group, k_dim, v_dim)) {
  const std::span<std::byte> bytes = arena.Allocate(Bytes(workers, group, k_dim, v_dim), 64);
  floats_ = {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

AttentionScratch::State AttentionScratch::At(int worker, int which) const {
  float* base = floats_.data() + static_cast<size_t>(worker) * worker_floats_ +
                static_cast<size_t>(which) * state_floats_;
  return {base, base + group_, base + 2 * group_};
}

float* AttentionScratch::query(int worker) const {
  return floats_.data() + static_cast<size_t>(worker) * worker_floats_ + 2 * state_floats_;
}

float* AttentionScratch::sink_query(int worker) const { return query(worker) + query_floats_; }

void Attention(const runtime::Context& context, const AttentionScratch& scratch, const AttentionSpec& spec,
               kv::Cache& cache, std::span<const AttentionRow> rows, const float* q, float* out) {
  // A work item is one row and the query heads of one KV head; with fewer items than workers, groups are
  // halved.
  const int group = spec.n_heads / spec.n_kv_heads;
  int heads_per_item = group;
  while (heads_per_item % 2 == 0 &&
         static_cast<int64_t>(rows.size()) * (spec.n_heads / heads_per_item) < 2 * context.pool->size()) {
    heads_per_item /= 2;
  }
  const int64_t items_per_row = spec.n_heads / heads_per_item;
  context.pool->ParallelFor(static_cast<int64_t>(rows.size()) * items_per_row, 1,
                            [&](int64_t item, int64_t, int worker) {
                              const int64_t r = item / items_per_row;
                              const int first_head = static_cast<int>(item % items_per_row) * heads_per_item;
                              const Query query{.row = &rows[static_cast<size_t>(r)],
                                                .index = r,
                                                .q = q + (r * spec.n_heads + first_head) * spec.k_dim,
                                                .first_head = first_head,
                                                .heads = heads_per_item};
                              AttendQuery(context, scratch, worker, spec, cache, query,
                                          out + (r * spec.n_heads + first_head) * spec.v_dim);
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
  const int32_t page = row.sequence->page(layer, row.position / kTile);
  const size_t slot = static_cast<size_t>(row.position % kTile);
  for (int head = 0; head < shape.n_kv_heads; ++head) {
    store(cache.config().k_type, cache.rotates_keys(), k + head * shape.k_dim, shape.k_dim,
          cache.Keys(layer, page, head) + slot * cache.k_row_bytes(layer));
    store(cache.config().v_type, cache.rotates_values(), v + head * shape.v_dim, shape.v_dim,
          cache.Values(layer, page, head) + slot * cache.v_row_bytes(layer));
  }
}

}  // namespace sluice::ops
