// What the queries of attention see, and in which order it is worked on (docs/arithmetic.md, "Attention").
// Private to this folder; any thread, with a scratch of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "ops/attention.h"

namespace sluice::ops {

inline constexpr int64_t kChunkPositions = 512;
inline constexpr int64_t kTile = kv::kPagePositions;
static_assert(kChunkPositions % kTile == 0);

// Query heads [first_head, first_head + heads) of one row, which share a KV head.
struct Query {
  const AttentionRow* row;
  int64_t index;  // of the row in the batch
  const float* q;
  int first_head;
  int heads;
};

// The same heads of several rows, one behind the other in the batch, which see one span each, in the same
// chunks; or of a single row.
struct Block {
  Query first;
  int rows;

  Query row(const AttentionSpec& spec, int r) const {
    Query query = first;
    query.row += r;
    query.index += r;
    query.q += int64_t{r} * spec.n_heads * spec.k_dim;
    return query;
  }
  int queries() const { return rows * first.heads; }
};

// How a query is turned before it looks.
enum class Turned : uint8_t { kNot, kBack, kBackAndALap, kByALap };

// Visible slots [first, last), and the query that looks at them: what it is and where it stands.
struct Span {
  int64_t first, last;
  int64_t position;
  Turned turned;
  const float* q = nullptr;
};

// What a query sees, by ascending slots.
struct Spans {
  std::array<Span, AttentionScratch::kQueries> span;
  int count = 0;
  std::span<const Span> all() const { return std::span(span).first(static_cast<size_t>(count)); }
  void Add(int64_t first, int64_t last, int64_t position, Turned turned = Turned::kNot) {
    if (first < last) span[static_cast<size_t>(count++)] = {first, last, position, turned};
  }
};

// With the queries, made in the worker's scratch.
Spans SpansOf(const AttentionSpec& spec, const kv::Cache& cache, const Query& query,
              const AttentionScratch& scratch, int worker);

// What the rows of a block see: each of them, and all together.
struct BlockSpans {
  Spans all;                                       // of a single row, or one that covers those of the rows
  std::array<Span, AttentionSize::kMostRows> row;  // of several
  int64_t q_stride = 0;                            // from one row's query to the next one's
};

// With the queries, made in the worker's scratch.
void MakeSpans(const AttentionSpec& spec, const kv::Cache& cache, const Block& block,
               const AttentionScratch& scratch, int worker, BlockSpans& spans);

// Whether rows may be in one block.
bool SeeAlike(const AttentionSpec& spec, const kv::Cache& cache, const AttentionRow& a,
              const AttentionRow& b);

// Calls fn(first, last) for the parts of [first, last) that lie in one tile.
template <typename F>
void ForEachTile(int64_t first, int64_t last, F&& fn) {
  for (int64_t from = first; from < last;) {
    const int64_t to = std::min(last, (from / kTile + 1) * kTile);
    fn(from, to);
    from = to;
  }
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

}  // namespace sluice::ops
