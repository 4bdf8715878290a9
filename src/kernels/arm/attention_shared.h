// One tile of attention for the queries of several rows (AttentionRowsArgs): keys and values become floats
// once for all of them.
//
// Eight queries, heads of one row after another's, are the lanes of two registers. Keys lie with four slots
// side by side, so that a register of them meets the queries element by element: the sixteen virtual lanes of
// a product are then whole registers, one after the other, and folded by adding those; nothing has to be done
// across lanes. What is summed up is always eight by eight, in sixteen registers. Private to this folder; in
// an anonymous namespace, as formats.h.
#pragma once

#include <algorithm>

#include "kernels/arm/kv_elements.h"
#include "kernels/arm/math.h"
#include "kernels/attention_rows.h"

namespace sluice::kernels::arm {
namespace {

constexpr int kSharing = 8;  // queries
constexpr int kSlotsAtOnce = 8;
constexpr float kMinusInfinity = -__builtin_inff();

// Sums of eight by eight: [slot][queries], or [query][columns].
struct EightByEight {
  float32x4_t v[8][2];
};

// sums[from + n] += x · element n of four.
template <int kFrom>
[[gnu::always_inline]] inline void AddFour(EightByEight& sums, float32x4_t four, const float32x4_t (&x)[2]) {
  for (int half = 0; half < 2; ++half) {
    sums.v[kFrom][half] = vfmaq_laneq_f32(sums.v[kFrom][half], x[half], four, 0);
    sums.v[kFrom + 1][half] = vfmaq_laneq_f32(sums.v[kFrom + 1][half], x[half], four, 1);
    sums.v[kFrom + 2][half] = vfmaq_laneq_f32(sums.v[kFrom + 2][half], x[half], four, 2);
    sums.v[kFrom + 3][half] = vfmaq_laneq_f32(sums.v[kFrom + 3][half], x[half], four, 3);
  }
}

// sums[n] += x · element n, for four elements and four others.
[[gnu::always_inline]] inline void AddEight(EightByEight& sums, const float* first, const float* second,
                                            const float* x) {
  const float32x4_t columns[2] = {vld1q_f32(x), vld1q_f32(x + 4)};
  AddFour<0>(sums, vld1q_f32(first), columns);
  AddFour<4>(sums, vld1q_f32(second), columns);
}

// The slots of a stretch and those around it that make up whole runs of n.
inline VisibleSlots Whole(const VisibleSlots& seen, int n) {
  return {seen.first / n * n, (seen.last + n - 1) / n * n, 0};
}

// Sixteen columns of a row from j on, filled up with zeros.
template <typename Element>
inline Sixteen LoadColumns(const std::byte* row, int j, int columns) {
  return columns - j < 16 ? Element::LoadLast(row, j, columns - j) : Element::Load(row, j);
}

// Keys of slots first … last − 1, both multiples of four, to tile.k: [four slots][column][slot].
template <typename Element>
void WidenKeys(const AttentionTileArgs& args, int first, int last, const SharedTile& tile) {
  float* to = tile.k + static_cast<int64_t>(first) * tile.k_runs * 16;
  for (int slot = first; slot < last; slot += 4) {
    const std::byte* const row = args.k + static_cast<size_t>(slot) * args.k_row_bytes;
    for (int j = 0; j < args.k_dim; j += 16) {
      Sixteen key[4];
      for (size_t n = 0; n < 4; ++n) key[n] = LoadColumns<Element>(row + n * args.k_row_bytes, j, args.k_dim);
      for (int t = 0; t < 4; ++t, to += 16) {
        const float32x4x4_t columns = {{key[0].v[t], key[1].v[t], key[2].v[t], key[3].v[t]}};
        vst4q_f32(to, columns);  // the transpose is the store's own order
      }
    }
  }
}

// Values of slots first … last − 1 to tile.v: [slot][column].
template <typename Element>
void WidenValues(const AttentionTileArgs& args, int first, int last, const SharedTile& tile) {
  float* to = tile.v + static_cast<int64_t>(first) * tile.v_runs * 16;
  for (int slot = first; slot < last; ++slot) {
    const std::byte* const row = args.v + static_cast<size_t>(slot) * args.v_row_bytes;
    for (int j = 0; j < args.v_dim; j += 16, to += 16)
      StoreTail(LoadColumns<Element>(row, j, args.v_dim), 16, to);
  }
}

// Scores or probabilities.
struct SharedScores {
  float value[kSlots][kSharing];
};

// Scaled dot products of slots slot … slot + 7 with eight queries.
[[gnu::noinline]] void DotSlots(const SharedTile& tile, const float* q, int slot, float scale,
                                SharedScores& s) {
  const int64_t four_slots = int64_t{tile.k_runs} * 64;
  const float* const k = tile.k + slot / 4 * four_slots;
  EightByEight waiting[4];  // sums that others are to be added to
  EightByEight* top = waiting;
  for (int turn = 0; turn < 16; ++turn) {
    const int lane = LaneToFold(turn);
    EightByEight sums = {};
    const float *key = k + 4 * lane, *query = q + kSharing * lane;
    for (int run = 0; run < tile.k_runs; ++run, key += 64, query += 16 * kSharing)
      AddEight(sums, key, key + four_slots, query);
    for (int odd = turn; (odd & 1) != 0; odd >>= 1) {
      --top;
      Times<16>([&]<int i>() __attribute__((always_inline)) {
        sums.v[i / 2][i % 2] = vaddq_f32(top->v[i / 2][i % 2], sums.v[i / 2][i % 2]);
      });
    }
    Times<16>([&]<int i>() __attribute__((always_inline)) { top->v[i / 2][i % 2] = sums.v[i / 2][i % 2]; });
    ++top;
  }
  Times<16>([&]<int i>() __attribute__((always_inline)) {
    vst1q_f32(s.value[slot] + 4 * i, vmulq_n_f32(waiting[0].v[i / 2][i % 2], scale));
  });
}

// Eight columns of the outputs of eight queries.
struct SharedOutputs {
  float value[kSharing][8];
};

// At most eight columns.
inline void CopyColumns(const float* from, int columns, float* to) {
  if (columns < 8) {
    std::copy_n(from, columns, to);
  } else {
    vst1q_f32_x2(to, vld1q_f32_x2(from));
  }
}

// o = o + Σ p · v over slots first … last − 1, for all queries. `v`: eight columns of slot 0, `pitch` floats
// from one slot to the next.
[[gnu::noinline]] void AddValuesToAll(const SharedScores& p, const float* v, int64_t pitch, int first,
                                      int last, SharedOutputs& o) {
  EightByEight sums;
  Times<16>([&]<int i>()
                __attribute__((always_inline)) { sums.v[i / 2][i % 2] = vld1q_f32(o.value[0] + 4 * i); });
  v += first * pitch;
  for (int slot = first; slot < last; ++slot, v += pitch) AddEight(sums, p.value[slot], p.value[slot] + 4, v);
  Times<16>([&]<int i>()
                __attribute__((always_inline)) { vst1q_f32(o.value[0] + 4 * i, sums.v[i / 2][i % 2]); });
}

// The same for one of them; none where the stretch is empty.
inline void AddValuesToOne(const SharedScores& p, const float* v, int64_t pitch, int first, int last,
                           int lane, SharedOutputs& o) {
  if (first >= last) return;
  float32x4_t sums[2] = {vld1q_f32(o.value[lane]), vld1q_f32(o.value[lane] + 4)};
  v += first * pitch;
  for (int i = first; i < last; ++i, v += pitch) {
    for (int half = 0; half < 2; ++half)
      sums[half] = vfmaq_n_f32(sums[half], vld1q_f32(v + 4 * half), p.value[i][lane]);
  }
  for (int half = 0; half < 2; ++half) vst1q_f32(o.value[lane] + 4 * half, sums[half]);
}

// Eight queries from the first one on, a multiple of eight; where there are fewer, the last one again.
class SharedQueries {
 public:
  SharedQueries(const AttentionRowsArgs& args, const SharedTile& tile, int first)
      : args_(args), tile_(tile), first_(first) {
    const int queries = args.rows * args.tile.heads;
    count_ = std::min(kSharing, queries - first);
    for (int lane = 0; lane < kSharing; ++lane) {
      query_[lane] = std::min(first + lane, queries - 1);
      visible_[lane] = args.visible[query_[lane] / args.tile.heads];
    }
  }

  void Attend() {
    const int heads = args_.tile.heads;
    const VisibleSlots seen = SeenByAny(args_, first_ / heads, query_[kSharing - 1] / heads + 1);
    if (seen.first >= seen.last) return;
    const VisibleSlots dots = Whole(seen, kSlotsAtOnce);
    const float* const q = tile_.q + static_cast<int64_t>(first_) * tile_.k_runs * 16;
    for (int i = dots.first; i < dots.last; i += kSlotsAtOnce) DotSlots(tile_, q, i, args_.tile.scale, s_);
    slots_ = Whole(seen, 16);
    FinishScores();
    Softmax();
    AddValues();
  }

 private:
  // Scaled dot products → scores, −infinity where a slot is not visible.
  void FinishScores() {
    if (args_.tile.softcap > 0.0f) {
      for (float* s = s_.value[slots_.first]; s < s_.value[slots_.last]; s += 4)
        vst1q_f32(s, Capped(args_.tile.softcap, vld1q_f32(s)));
    }
    for (int lane = 0; lane < kSharing; ++lane) {
      const VisibleSlots& visible = visible_[lane];
      for (int i = slots_.first; i < visible.first; ++i) s_.value[i][lane] = kMinusInfinity;
      for (int i = visible.last; i < slots_.last; ++i) s_.value[i][lane] = kMinusInfinity;
      if (args_.tile.alibi_slopes == nullptr) continue;
      const float slope = args_.tile.alibi_slopes[query_[lane] % args_.tile.heads];
      for (int i = visible.first; i < visible.last; ++i) {
        const auto distance = static_cast<float>(visible.first_distance + (i - visible.first));
        s_.value[i][lane] = __builtin_fmaf(slope, distance, s_.value[i][lane]);
      }
    }
  }

  // Scores → probabilities; brings m and l up to date, but for queries that see nothing.
  void Softmax() {
    float m[kSharing], l[kSharing];
    for (int lane = 0; lane < kSharing; ++lane) {
      m[lane] = args_.tile.m[query_[lane]];
      l[lane] = args_.tile.l[query_[lane]];
    }
    for (int half = 0; half < kSharing; half += 4) SoftmaxOfFour(half, m + half, l + half);
    for (int lane = 0; lane < count_; ++lane) {
      if (visible_[lane].first >= visible_[lane].last) continue;
      args_.tile.m[query_[lane]] = m[lane];
      args_.tile.l[query_[lane]] = l[lane];
    }
  }

  void SoftmaxOfFour(int lane, float* m, float* l) {
    float* const p = s_.value[0] + lane;
    const float32x4_t before = vld1q_f32(m);
    float32x4_t largest = before;
    for (int i = slots_.first; i < slots_.last; ++i) {
      const float32x4_t s = vld1q_f32(p + i * kSharing);
      largest = vbslq_f32(vcgtq_f32(s, largest), s, largest);  // passes over NaN
    }
    largest = vaddq_f32(largest, vdupq_n_f32(0));
    const float32x4_t change = Exp4(vsubq_f32(before, largest));

    // Slot i to lane i mod 16 of the sum.
    float32x4_t sums[16];
    for (float32x4_t& sum : sums) sum = vdupq_n_f32(0);
    for (int i = slots_.first; i < slots_.last; i += 16) {
      for (int n = 0; n < 16; ++n) {
        float* const at = p + (i + n) * kSharing;
        const float32x4_t weight = Exp4(vsubq_f32(vld1q_f32(at), largest));
        vst1q_f32(at, weight);
        sums[n] = vaddq_f32(sums[n], weight);
      }
    }
    for (int half = 8; half > 0; half /= 2) {
      for (int n = 0; n < half; ++n) sums[n] = vaddq_f32(sums[n], sums[n + half]);
    }
    vst1q_f32(m, largest);
    vst1q_f32(l, vfmaq_f32(sums[0], vld1q_f32(l), change));
    vst1q_f32(change_ + lane, change);
  }

  void AddValues() {
    VisibleSlots all{0, kSlots, 0};  // what all see
    for (const VisibleSlots& visible : visible_) {
      all.first = std::max(all.first, visible.first);
      all.last = std::min(all.last, visible.last);
    }
    if (all.first >= all.last) all.first = all.last = kSlots;
    for (int j = 0; j < args_.tile.v_dim; j += 8) AddColumns(j, std::min(8, args_.tile.v_dim - j), all);
  }

  // Columns from j on, at most eight. What all see is added to all at once, what comes before and after it to
  // each alone.
  void AddColumns(int j, int columns, const VisibleSlots& all) {
    SharedOutputs o = {};
    for (int lane = 0; lane < kSharing; ++lane) {
      CopyColumns(Output(lane, j), columns, o.value[lane]);
      for (float& value : o.value[lane]) value *= change_[lane];
    }
    const int64_t pitch = int64_t{tile_.v_runs} * 16;
    const float* const v = tile_.v + j;
    for (int lane = 0; lane < count_; ++lane)
      AddValuesToOne(s_, v, pitch, visible_[lane].first, std::min(visible_[lane].last, all.first), lane, o);
    AddValuesToAll(s_, v, pitch, all.first, all.last, o);
    for (int lane = 0; lane < count_; ++lane) {
      const VisibleSlots& visible = visible_[lane];
      AddValuesToOne(s_, v, pitch, std::max(visible.first, all.last), visible.last, lane, o);
      if (visible.first < visible.last) CopyColumns(o.value[lane], columns, Output(lane, j));
    }
  }

  float* Output(int lane, int j) const {
    return args_.tile.o + static_cast<int64_t>(query_[lane]) * args_.tile.v_dim + j;
  }

  const AttentionRowsArgs& args_;
  const SharedTile& tile_;
  const int first_;
  int count_;            // that are not there several times
  int query_[kSharing];  // which one a lane is
  VisibleSlots visible_[kSharing];
  VisibleSlots slots_;      // whole sixteens that hold all that any of them sees
  SharedScores s_;          // only there
  float change_[kSharing];  // what their outputs so far are multiplied by
};

inline void ShareTile(const AttentionRowsArgs& args) {
  const SharedTile tile(args);
  if (args.new_queries) PackQueries(args, kSharing, tile);
  const VisibleSlots seen = SeenByAny(args, 0, args.rows);
  if (seen.first >= seen.last) return;
  const VisibleSlots keys = Whole(seen, kSlotsAtOnce);
  WithElement(args.tile.k_type,
              [&](auto element) { WidenKeys<decltype(element)>(args.tile, keys.first, keys.last, tile); });
  WithElement(args.tile.v_type,
              [&](auto element) { WidenValues<decltype(element)>(args.tile, seen.first, seen.last, tile); });
  for (int first = 0; first < args.rows * args.tile.heads; first += kSharing)
    SharedQueries(args, tile, first).Attend();
}

}  // namespace
}  // namespace sluice::kernels::arm
