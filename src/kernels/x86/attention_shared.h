// One tile of attention for the queries of several rows (AttentionRowsArgs): keys and values are turned into
// floats once for all of them. Templates of internal linkage (isa_avx2.h).
//
// Sixteen queries, heads of one row after another's, are the lanes of a register; with the scores in the
// order [slot][query], nothing has to be done across lanes. The sixteen virtual lanes of a dot product are
// sixteen registers then, one after the other, and folded by adding whole registers.
#pragma once

#include "kernels/attention_rows.h"
#include "kernels/x86/attention_tile.h"

namespace sluice::kernels {
namespace {

// The queries of a tile from the first one on, a multiple of sixteen.
inline const float* QueriesFrom(const SharedTile& tile, int first) {
  return tile.q + static_cast<int64_t>(first) * tile.k_runs * kLanes16;
}

// Rows first … last − 1 of a tile, as floats.
template <class Isa, class Element, int kColumns>
[[gnu::noinline]] void WidenRows(const Rows<Element, kColumns>& rows, int first, int last, float* to) {
  const int columns = rows.columns();
  TileScales scales;
  GatherScales<Isa, Element>(rows.data, rows.distance(), rows.blocks(), first, last, scales.value);
  const int whole_runs = (columns + kLanes16 - 1) / kLanes16;
  to += static_cast<int64_t>(first) * whole_runs * kLanes16;
  for (int i = first; i < last; ++i) {
    const std::byte* const row = rows.row(i);
    const float* const scale = scales.value[0] + i;
    int j = 0;
    for (; j + 32 <= columns; j += 32, to += 32) {
      Isa::Store(to, Element::template Load<Isa, 0>(row, scale, j));
      Isa::Store(to + 16, Element::template Load<Isa, 1>(row, scale, j + 16));
    }
    for (; j < columns; j += 16, to += 16) {
      const bool whole = j + 16 <= columns;
      Isa::Store(to, whole ? Element::template Load<Isa, 0>(row, scale, j)
                           : LoadLastElements<Isa, Element>(row, scale, j, columns - j));
    }
  }
}

template <class Isa>
inline void Widen(KvType type, int columns, size_t row_bytes, const std::byte* from, const VisibleSlots& seen,
                  float* to) {
  WithRows(type, columns, row_bytes, [&]<class Element, int kColumns>() {
    WidenRows<Isa>(Rows<Element, kColumns>{from, columns, row_bytes}, seen.first, seen.last, to);
  });
}

// Has the next tile's keys and values come nearer, a few lines at each step.
class NextTile {
 public:
  // groups: in how many stretches of 64 slots it is to be had.
  NextTile(const AttentionRowsArgs& args, int groups)
      : k_(args.tile.next, args.tile.k_row_bytes, groups),
        v_(args.next_values, args.tile.v_row_bytes, groups) {}
  // With so many slots done.
  void Step(int slots) {
    k_.Step(slots);
    v_.Step(slots);
  }

 private:
  struct RowsAhead {
    RowsAhead(const std::byte* rows, size_t row_bytes, int groups)
        : at(rows),
          end(rows == nullptr ? nullptr : rows + kSlots * row_bytes),
          bytes(row_bytes / static_cast<size_t>(groups) + 1) {}
    void Step(int slots) {
      if (at == nullptr) return;
      const std::byte* const until = std::min(end, at + bytes * static_cast<size_t>(slots));
      for (; at < until; at += 64) _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
    }
    const std::byte *at, *end;
    size_t bytes;  // for each slot that is done
  };
  RowsAhead k_, v_;
};

// Scaled dot products of slots i … i + S − 1 with V times sixteen queries, L virtual lanes at once, 1 or 2.
template <class Isa, int V, int S, int L, int kRuns>
[[gnu::always_inline]] inline void DotSlots(const SharedTile& tile, const float* q, int i,
                                            typename Isa::Lanes scale, SlotValues<kLanes16>* s) {
  using Lanes = typename Isa::Lanes;
  const int runs = kRuns > 0 ? kRuns : tile.k_runs;
  const int64_t pitch = int64_t{runs} * kLanes16;
  const float* const k = tile.k + i * pitch;
  // Virtual lanes in such an order that each can be added to what is waiting for it: 0, 8, 4, 12, 2 …
  constexpr int kLevels = L == 2 ? 3 : 4;
  Lanes waiting[kLevels][V * S];
  int depth = 0;
  for (int turn = 0; turn < kLanes16 / L; ++turn) {
    const int reversed = (turn & 1) << 3 | (turn & 2) << 1 | (turn & 4) >> 1 | turn >> 3;
    const int lane = reversed / L;
    Lanes acc[L * V * S];
    Times<L * V * S>([&]<int a>() __attribute__((always_inline)) { acc[a] = Isa::Set(0.0f); });
    const float* key = k + lane;
    const float* query = q + lane * kLanes16;
    for (int run = 0; run < runs; ++run, key += kLanes16, query += kLanes16 * kLanes16) {
      Times<L>([&]<int l>() __attribute__((always_inline)) {
        Lanes columns[V];
        Times<V>([&]<int v>() __attribute__((always_inline)) {
          columns[v] = Isa::LoadF32(query + 8 * l * kLanes16 + v * pitch * kLanes16);
        });
        Times<S>([&]<int n>() __attribute__((always_inline)) {
          const Lanes element = Isa::Set(key[8 * l + n * pitch]);
          Times<V>([&]<int v>() __attribute__((always_inline)) {
            constexpr int a = (l * S + n) * V + v;
            acc[a] = Isa::Fma(columns[v], element, acc[a]);
          });
        });
      });
    }
    if constexpr (L == 2)
      Times<V * S>([&]<int a>()
                       __attribute__((always_inline)) { acc[a] = Isa::Add(acc[a], acc[V * S + a]); });
    for (int odd = turn; (odd & 1) != 0; odd >>= 1) {
      --depth;
      Times<V * S>([&]<int a>()
                       __attribute__((always_inline)) { acc[a] = Isa::Add(waiting[depth][a], acc[a]); });
    }
    Times<V * S>([&]<int a>() __attribute__((always_inline)) { waiting[depth][a] = acc[a]; });
    ++depth;
  }
  for (int a = 0; a < V * S; ++a) Isa::Store(s[a % V].value[i + a / V], Isa::Multiply(waiting[0][a], scale));
}

// Of all slots in `seen`, and some others.
template <class Isa, int V, int kRuns>
[[gnu::noinline]] void DotSeen(const SharedTile& tile, const float* q, const VisibleSlots& seen, float scale,
                               NextTile& next, SlotValues<kLanes16>* s) {
  constexpr int L = Isa::kAccumulators >= 16 ? 2 : 1;
  constexpr int S = Isa::kAccumulators / V / L;
  for (int i = seen.first / S * S; i < seen.last; i += S) {
    next.Step(S);
    DotSlots<Isa, V, S, L, kRuns>(tile, q, i, Isa::Set(scale), s);
  }
}

// Sixteen queries, the first of them a multiple of sixteen, from their scores on.
template <class Isa>
class SharedQueries {
 public:
  SharedQueries(const AttentionRowsArgs& args, const SharedTile& tile, int first, SlotValues<kLanes16>& s)
      : args_(args),
        tile_(tile),
        first_(first),
        lanes_(first, std::min(kLanes16, args.rows * args.tile.heads - first)),
        s_(s) {
    for (int lane = 0, row = first / args.tile.heads, head = first % args.tile.heads; lane < kLanes16;
         ++lane) {
      visible_[lane] = args.visible[row];
      head_[lane] = head;
      if (lane + 1 >= lanes_.count) continue;  // the last one again
      if (++head < args.tile.heads) continue;
      head = 0;
      ++row;
    }
  }

  void Attend() {
    CapScores<kLanes16>(args_.tile.softcap, s_);
    bool see_all = true;
    for (int lane = 0; lane < kLanes16; ++lane) {
      const VisibleSlots& visible = visible_[lane];
      see_all = see_all && visible.first == 0 && visible.last == kSlots;
      if (args_.tile.alibi_slopes != nullptr)
        AddSlope<kLanes16>(args_.tile.alibi_slopes[head_[lane]], visible, lane, s_);
    }
    if (see_all) {
      Softmax<Isa, kLanes16>(args_.tile, lanes_, s_, change_);
    } else {
      HideSlots();
      SoftmaxOfSeeing();
    }
    for (int lane = 0; lane < lanes_.count; lane += kTogether) AddValuesOf(lane);
  }

 private:
  static constexpr int kTogether = 4;  // queries to which values are added at once

  bool SeesNothing(int lane) const { return visible_[lane].first >= visible_[lane].last; }

  void HideSlots() {
    for (int lane = 0; lane < kLanes16; ++lane) {
      const VisibleSlots& visible = visible_[lane];
      for (int i = 0; i < visible.first; ++i) s_.value[i][lane] = kMinusInfinity;
      for (int i = visible.last; i < kSlots; ++i) s_.value[i][lane] = kMinusInfinity;
    }
  }

  // Leaves m and l of those that see nothing as they are.
  void SoftmaxOfSeeing() {
    float m[kLanes16], l[kLanes16];
    for (int lane = 0; lane < lanes_.count; ++lane) {
      m[lane] = args_.tile.m[first_ + lane];
      l[lane] = args_.tile.l[first_ + lane];
    }
    Softmax<Isa, kLanes16>(args_.tile, lanes_, s_, change_);
    for (int lane = 0; lane < lanes_.count; ++lane) {
      if (!SeesNothing(lane)) continue;
      args_.tile.m[first_ + lane] = m[lane];
      args_.tile.l[first_ + lane] = l[lane];
    }
  }

  void AddValuesOf(int lane) {
    const int count = std::min(kTogether, lanes_.count - lane);
    bool alike = true;
    for (int i = 1; i < count; ++i) {
      alike = alike && visible_[lane + i].first == visible_[lane].first &&
              visible_[lane + i].last == visible_[lane].last;
    }
    if (alike) return AddValuesTo<kTogether>(lane, count);
    for (int i = 0; i < count; ++i) AddValuesTo<1>(lane + i, 1);
  }

  template <int H>
  void AddValuesTo(int lane, int count) {
    if (SeesNothing(lane)) return;
    Weighted<H, kLanes16> to{
        .p = s_.value[0] + lane, .first = visible_[lane].first, .last = visible_[lane].last, .heads = count};
    const int64_t columns = args_.tile.v_dim;
    for (int h = 0; h < H; ++h) {
      const int of = lane + std::min(h, count - 1);
      to.o[h] = args_.tile.o + (first_ + of) * columns;
      to.change[h] = change_[of];
    }
    if (columns == 64) return AddValueRows<H, 64>(to);
    if (columns == 128) return AddValueRows<H, 128>(to);
    AddValueRows<H, 0>(to);
  }

  template <int H, int kColumns>
  [[gnu::noinline]] void AddValueRows(const Weighted<H, kLanes16>& to) {
    struct {
      void Step() {}
    } nothing_ahead;
    const Rows<ElementF32, kColumns> rows{reinterpret_cast<const std::byte*>(tile_.v), args_.tile.v_dim,
                                          ElementF32::RowBytes(tile_.v_runs * kLanes16)};
    AddColumns<Isa>(rows, kNoScales, to, nothing_ahead);
  }

  static constexpr TileScales kNoScales{};
  const AttentionRowsArgs& args_;
  const SharedTile& tile_;
  const int first_;
  const Heads<kLanes16> lanes_;  // each a query
  VisibleSlots visible_[kLanes16];
  int head_[kLanes16];  // of the row
  SlotValues<kLanes16>& s_;
  float change_[kLanes16];
};

// V times sixteen queries from the first one on.
template <class Isa, int V>
inline void ShareAmong(const AttentionRowsArgs& args, const SharedTile& tile, NextTile& next, int first) {
  const int last = std::min(first + V * kLanes16, args.rows * args.tile.heads);
  const VisibleSlots seen = SeenByAny(args, first / args.tile.heads, (last - 1) / args.tile.heads + 1);
  if (seen.first >= seen.last) return;
  SlotValues<kLanes16> s[V];
  const float* const q = QueriesFrom(tile, first);
  if (tile.k_runs == 4) {
    DotSeen<Isa, V, 4>(tile, q, seen, args.tile.scale, next, s);
  } else if (tile.k_runs == 8) {
    DotSeen<Isa, V, 8>(tile, q, seen, args.tile.scale, next, s);
  } else {
    DotSeen<Isa, V, 0>(tile, q, seen, args.tile.scale, next, s);
  }
  for (int v = 0; v < V; ++v) SharedQueries<Isa>(args, tile, first + v * kLanes16, s[v]).Attend();
}

template <class Isa>
inline void ShareTile(const AttentionRowsArgs& args) {
  const VisibleSlots seen = SeenByAny(args, 0, args.rows);
  const SharedTile tile(args);
  if (args.new_queries) PackQueries(args, kLanes16, tile);
  if (seen.first >= seen.last) return;
  Widen<Isa>(args.tile.k_type, args.tile.k_dim, args.tile.k_row_bytes, args.tile.k, seen, tile.k);
  Widen<Isa>(args.tile.v_type, args.tile.v_dim, args.tile.v_row_bytes, args.tile.v, seen, tile.v);
  const int queries = args.rows * args.tile.heads;
  constexpr int kWide = Isa::kAccumulators >= 16 ? 2 : 1;
  NextTile next(args, (queries + kWide * kLanes16 - 1) / (kWide * kLanes16));
  int first = 0;
  if constexpr (kWide == 2) {
    for (; first + kLanes16 < queries; first += 2 * kLanes16) ShareAmong<Isa, 2>(args, tile, next, first);
  }
  for (; first < queries; first += kLanes16) ShareAmong<Isa, 1>(args, tile, next, first);
}

// All rows: sharing the tile where that is worth it, else each by `attend`, the table's own for one.
template <class Isa>
inline void AttendRows(AttentionTileFn attend, const AttentionRowsArgs& args) {
  if (IsWorthSharing(args, kLanes16)) {
    ShareTile<Isa>(args);
  } else {
    AttendRowByRow(attend, args);
  }
}

}  // namespace
}  // namespace sluice::kernels
