#include "ops/attention_spans.h"

#include "ops/rotation.h"

namespace sluice::ops {

namespace {

// kHeavy: the slots of a layer by laps (kv/heavy_set.h). Its own lap and the one before a query sees at true
// distances, those before them as if two laps lay between.
Spans HeavySpans(const AttentionSpec& spec, const kv::Cache& cache, const AttentionRow& row) {
  const kv::Sequence& sequence = *row.sequence;
  const int64_t position = row.position;
  const int64_t end = sequence.slot(position) + 1;
  const int64_t lap = cache.heavy().lap();
  const int64_t own = position / lap;
  Spans spans;
  if (own < 2) {
    spans.Add(0, end, position);
    return spans;
  }
  const std::span<const int32_t> positions =
      sequence.set().positions(spec.layer).first(static_cast<size_t>(end));
  const auto slot_of = [&](int64_t first_position) {
    return std::ranges::lower_bound(positions, static_cast<int32_t>(first_position)) - positions.begin();
  };
  const int64_t first_lap = slot_of(lap), previous = slot_of((own - 1) * lap), newest = slot_of(own * lap);
  spans.Add(0, first_lap, position, Turned::kBack);
  if (own > 2) spans.Add(first_lap, previous, position, Turned::kBackAndALap);
  spans.Add(previous, newest, position, Turned::kByALap);
  spans.Add(newest, end, position);
  return spans;
}

// But for the queries.
Spans SpansOf(const AttentionSpec& spec, const kv::Cache& cache, const AttentionRow& row) {
  if (row.sequence->keeps_heavy()) return HeavySpans(spec, cache, row);
  const int64_t position = row.position;
  const int64_t first = spec.view.window > 0 ? std::max<int64_t>(0, position + 1 - spec.view.window) : 0;
  Spans spans;
  if (first <= spec.view.sinks) {
    spans.Add(0, position + 1, position);
  } else {
    spans.Add(0, spec.view.sinks, SinkView(spec.view, position), Turned::kBack);
    spans.Add(first, position + 1, position);
  }
  return spans;
}

// The query that looks at a span: as it is, or in `place` [heads, k_dim], turned, and rotated where keys are.
const float* QueryOf(const AttentionSpec& spec, const kv::Cache& cache, const Query& query, Turned turned,
                     float* place) {
  const Turns& turns = spec.turns;
  if (turns.turn == nullptr) turned = Turned::kNot;
  if (turned == Turned::kNot && !cache.rotates_keys()) return query.q;
  std::copy_n(query.q, query.heads * spec.k_dim, place);
  for (int h = 0; h < query.heads; ++h) {
    float* const q = place + h * spec.k_dim;
    const int64_t row = query.index * turns.pairs;
    if (turned == Turned::kBack || turned == Turned::kBackAndALap)
      turns.turn(q, turns.back_cos + row, turns.back_sin + row, turns.pairs);
    if (turned == Turned::kByALap || turned == Turned::kBackAndALap)
      turns.turn(q, turns.lap_cos, turns.lap_sin, turns.pairs);
    if (cache.rotates_keys()) Rotate(q, spec.k_dim);
  }
  return place;
}

}  // namespace

Spans SpansOf(const AttentionSpec& spec, const kv::Cache& cache, const Query& query,
              const AttentionScratch& scratch, int worker) {
  Spans spans = SpansOf(spec, cache, *query.row);
  for (int i = 0; i < spans.count; ++i) {
    Span& span = spans.span[static_cast<size_t>(i)];
    span.q = QueryOf(spec, cache, query, span.turned, scratch.query(worker, i));
  }
  return spans;
}

void MakeSpans(const AttentionSpec& spec, const kv::Cache& cache, const Block& block,
               const AttentionScratch& scratch, int worker, BlockSpans& spans) {
  spans.all = SpansOf(spec, cache, block.first, scratch, worker);
  if (block.rows == 1) return;
  Span& all = spans.all.span[0];
  for (int r = 0; r < block.rows; ++r) {
    const Query query = block.row(spec, r);
    Span& span = spans.row[static_cast<size_t>(r)];
    span = SpansOf(spec, cache, *query.row).span[0];
    span.q = QueryOf(spec, cache, query, span.turned, scratch.query(worker, r));
    all.first = std::min(all.first, span.first);
    all.last = std::max(all.last, span.last);
  }
  spans.q_stride = spans.row[1].q - spans.row[0].q;
}

bool SeeAlike(const AttentionSpec& spec, const kv::Cache& cache, const AttentionRow& a,
              const AttentionRow& b) {
  if (a.sequence != b.sequence || spec.scores != nullptr) return false;
  const Spans of_a = SpansOf(spec, cache, a), of_b = SpansOf(spec, cache, b);
  if (of_a.count != 1 || of_b.count != 1) return false;
  const Span &x = of_a.span[0], &y = of_b.span[0];
  return x.first / kChunkPositions == y.first / kChunkPositions &&
         (x.last - 1) / kChunkPositions == (y.last - 1) / kChunkPositions;
}

}  // namespace sluice::ops
