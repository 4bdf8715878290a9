// One tile of attention (docs/arithmetic.md, section 5), up to eight query heads at a time, so that each key
// and value is loaded and widened once for all of them. Templates of internal linkage (isa_avx2.h).
//
// H heads, a power of two, are worked on together, with the scores in the order [slot][head]: a register of
// sixteen has 16 / H neighbouring slots, so that the sums over lanes of sixteen products are made in one go
// and maxima and sums of the heads run side by side. Where a group has fewer heads, its last one is done
// several times, and stored with equal bits.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/kernels.h"
#include "kernels/x86/kv_elements.h"
#include "kernels/x86/math256.h"

namespace sluice::kernels {
namespace {

constexpr int kSlots = kTileSlots;
constexpr int kLanes16 = 16;
constexpr float kMinusInfinity = -__builtin_inff();

// Scores or probabilities.
template <int H>
struct alignas(64) SlotValues {
  float value[kSlots][H];
};

// Scales of all blocks of 64 rows.
struct alignas(64) TileScales {
  float value[kMaxHeadDim / 32][kSlots];
};

// Rows of a tile: of kColumns elements, one behind the other, so that the compiler knows where each is; 0: of
// any number and distance.
template <class Element, int kColumns>
struct Rows {
  const std::byte* data;
  int any_columns;
  size_t any_distance;

  int columns() const { return kColumns > 0 ? kColumns : any_columns; }
  int blocks() const { return (columns() + 31) / 32; }
  size_t distance() const { return kColumns > 0 ? Element::RowBytes(kColumns) : any_distance; }
  const std::byte* row(int i) const { return data + static_cast<size_t>(i) * distance(); }
};

// What H heads of a tile have of their own: heads first … first + count − 1, then the last one again.
template <int H>
struct Heads {
  Heads(int first, int heads) : count(heads) {
    for (int h = 0; h < H; ++h) head[h] = first + std::min(h, count - 1);
  }
  int count;
  int head[H];
};

// The queries of the heads, sixteen columns of each side by side, filled up with zeros.
template <int H>
struct alignas(64) Queries {
  float value[kMaxHeadDim / 16][H][16];
};
template <class Isa, int H>
inline void GatherQueries(const AttentionTileArgs& args, const Heads<H>& heads, Queries<H>& to) {
  for (int h = 0; h < H; ++h) {
    const float* const q = args.q + heads.head[h] * args.q_stride;
    int j = 0;
    for (; j + 16 <= args.k_dim; j += 16) Isa::Store(to.value[j / 16][h], Isa::LoadF32(q + j));
    if (j == args.k_dim) continue;
    const auto* bytes = reinterpret_cast<const std::byte*>(q);
    Isa::Store(to.value[j / 16][h], LoadLastElements<Isa, ElementF32>(bytes, nullptr, j, args.k_dim - j));
  }
}

// Has what is read next come nearer, a part of it at each of `steps` steps: all at once, it would fill the
// buffers that loads wait in. Rows of floats are walked through in order, so theirs are had from a fixed
// distance, first of those under way, then of the next; those of blocks all by the time when their scales are
// gathered. Into the first-level cache: prefetching to the second one changed nothing where it was measured.
class Ahead {
 public:
  Ahead(bool blocks, const std::byte* rows, size_t bytes, const std::byte* next, size_t next_bytes, int steps)
      : step_((blocks ? next_bytes : bytes) / static_cast<size_t>(steps) + 1),
        left_(blocks ? 0 : bytes - std::min(bytes, kDistance)),
        at_(left_ > 0 ? rows + kDistance : next),
        until_(at_),
        next_(next) {}

  [[gnu::always_inline]] inline void Step() {
    if (until_ == nullptr) return;
    until_ += step_;
    for (; at_ < until_; at_ += kLineBytes) _mm_prefetch(reinterpret_cast<const char*>(at_), _MM_HINT_T0);
    if (left_ == 0) return;
    left_ -= std::min(left_, step_);
    if (left_ == 0) at_ = until_ = next_;
  }

 private:
  static constexpr size_t kDistance = 3072, kLineBytes = 64;
  const size_t step_;
  size_t left_;  // of the rows under way
  const std::byte* at_;
  const std::byte* until_;
  const std::byte* const next_;
};

// Calls f.operator()<0>() … f.operator()<N − 1>(): what is indexed by such numbers can stay in registers.
template <int N, class F>
[[gnu::always_inline]] inline void Times(F f) {
  [&]<int... n>(std::integer_sequence<int, n...>) __attribute__((always_inline)) {
    (f.template operator()<n>(), ...);
  }
  (std::make_integer_sequence<int, N>());
}

// Dot products of N keys, from slot i on, with heads from … from + G − 1, to acc[key · G + head].
template <class Isa, class Element, int H, int G, int N, int kColumns>
[[gnu::always_inline]] inline void DotKeys(const Rows<Element, kColumns>& keys, const Queries<H>& q, int from,
                                           const TileScales& scales, int i, typename Isa::Lanes* acc) {
  const std::byte* const k = keys.row(i);
  const float* const scale = scales.value[0] + i;
  Times<N * G>([&]<int a>() __attribute__((always_inline)) { acc[a] = Isa::Set(0.0f); });
  const auto add = [&]<int n>(int j, typename Isa::Lanes key) __attribute__((always_inline)) {
    Times<G>([&]<int h>() __attribute__((always_inline)) {
      acc[n * G + h] = Isa::Fma(Isa::LoadF32(q.value[j / 16][from + h]), key, acc[n * G + h]);
    });
  };
  // Columns j … j + 15, the half kHalf of a block of 32.
  const auto add_columns = [&]<int kHalf>(int j) __attribute__((always_inline)) {
    Times<N>([&]<int n>() __attribute__((always_inline)) {
      add.template operator()<n>(j,
                                 Element::template Load<Isa, kHalf>(k + n * keys.distance(), scale + n, j));
    });
  };
  const int columns = keys.columns();
  int j = 0;
  for (; j + 32 <= columns; j += 32) {
    add_columns.template operator()<0>(j);
    add_columns.template operator()<1>(j + 16);
  }
  if (j + 16 <= columns) {
    add_columns.template operator()<0>(j);
    j += 16;
  }
  if (j == columns) return;
  Times<N>([&]<int n>() __attribute__((always_inline)) {
    add.template operator()<n>(
        j, LoadLastElements<Isa, Element>(k + n * keys.distance(), scale + n, j, columns - j));
  });
}

// Calls f with the Element of `type` and, for the commonest sizes of heads, their columns.
template <class F>
inline void WithRows(KvType type, int columns, size_t row_bytes, F f) {
  const auto with = [&]<class Element>() {
    if (columns == 64 && row_bytes == Element::RowBytes(64)) return f.template operator()<Element, 64>();
    if (columns == 128 && row_bytes == Element::RowBytes(128)) return f.template operator()<Element, 128>();
    f.template operator()<Element, 0>();
  };
  switch (type) {
    case KvType::kF32:
      return f.template operator()<ElementF32, 0>();
    case KvType::kF16:
      return with.template operator()<ElementF16>();
    case KvType::kQ8_0:
      return with.template operator()<ElementQ8_0>();
    case KvType::kQ5_0:
      return f.template operator()<ElementQ5_0, 0>();
    case KvType::kQ4_0:
      return with.template operator()<ElementQ4_0>();
  }
}

// Scaled dot products of all visible slots, and of some others: of registers, whole.
template <class Isa, class Element, int H, int kColumns>
[[gnu::noinline]] void DotAllKeys(const AttentionTileArgs& args, const Heads<H>& heads, SlotValues<H>& s) {
  const Rows<Element, kColumns> keys{args.k, args.k_dim, args.k_row_bytes};
  constexpr int kStep = kLanes16 / H;  // slots
  constexpr int G = H < Isa::kAccumulators ? H : Isa::kAccumulators;
  constexpr int N = kStep < Isa::kAccumulators / G ? kStep : Isa::kAccumulators / G;
  const int begin = args.first / kStep * kStep;
  const int end = (args.last + kStep - 1) / kStep * kStep;
  TileScales scales;
  GatherScales<Isa, Element>(args.k, keys.distance(), keys.blocks(), begin, end, scales.value);
  Queries<H> q;
  GatherQueries<Isa, H>(args, heads, q);
  const typename Isa::Lanes scale = Isa::Set(args.scale);
  Ahead ahead(Element::kBytes == 0, args.k, kSlots * keys.distance(),
              args.scores != nullptr ? args.next : args.v,
              kSlots * (args.scores != nullptr ? args.k_row_bytes : args.v_row_bytes), (end - begin) / kStep);
  for (int i = begin; i < end; i += kStep) {
    ahead.Step();
    typename Isa::Lanes dots[kLanes16];  // [slot][head]
    Times<kStep / N>([&]<int n>() __attribute__((always_inline)) {
      Times<H / G>([&]<int h>() __attribute__((always_inline)) {
        typename Isa::Lanes acc[N * G];
        DotKeys<Isa, Element, H, G, N>(keys, q, h * G, scales, i + n * N, acc);
        Times<N * G>([&]<int a>() __attribute__((always_inline)) {
          dots[(n * N + a / G) * H + h * G + a % G] = acc[a];
        });
      });
    });
    Isa::Store(s.value[i], Isa::Multiply(Isa::FoldSixteen(dots), scale));
  }
}

// Scaled scores → scores, but for slopes: all that are there.
template <int H>
inline void CapScores(float softcap, SlotValues<H>& s) {
  if (softcap <= 0.0f) return;
  float* const scores = s.value[0];
  const __m256 cap = _mm256_set1_ps(softcap);
  for (int i = 0; i < kSlots * H; i += 8) {
    const __m256 v = _mm256_div_ps(_mm256_load_ps(scores + i), cap);
    _mm256_store_ps(scores + i, _mm256_mul_ps(cap, Tanh(v)));
  }
}

// One head's slope, for those of its slots that are visible.
template <int H>
inline void AddSlope(float slope, const VisibleSlots& visible, int h, SlotValues<H>& s) {
  for (int i = visible.first; i < visible.last; ++i) {
    const auto distance = static_cast<float>(visible.first_distance + (i - visible.first));
    s.value[i][h] = __builtin_fmaf(slope, distance, s.value[i][h]);
  }
}

// The scores of the heads at the visible slots; whatever elsewhere.
template <class Isa, int H>
inline void ScoreHeads(const AttentionTileArgs& args, const Heads<H>& heads, SlotValues<H>& s) {
  WithRows(args.k_type, args.k_dim, args.k_row_bytes,
           [&]<class Element, int kColumns>() { DotAllKeys<Isa, Element, H, kColumns>(args, heads, s); });
  CapScores<H>(args.softcap, s);
  if (args.alibi_slopes == nullptr) return;
  const VisibleSlots visible{args.first, args.last, args.first_distance};
  for (int h = 0; h < H; ++h) AddSlope<H>(args.alibi_slopes[heads.head[h]], visible, h, s);
}

// The same from memory.
template <int H>
inline void LoadScores(const AttentionTileArgs& args, const Heads<H>& heads, SlotValues<H>& s) {
  for (int h = 0; h < H; ++h) {
    const float* const scores = args.scores + heads.head[h] * kSlots;
    for (int i = args.first; i < args.last; ++i) s.value[i][h] = scores[i];
  }
}

// −infinity in the slots that are not visible.
template <int H>
inline void HideSlots(int first, int last, SlotValues<H>& s) {
  std::fill(s.value[0], s.value[first], kMinusInfinity);
  std::fill(s.value[last - 1] + H, s.value[kSlots - 1] + H, kMinusInfinity);
}

// Combines the slots within a register: lanes of one head.
template <class Isa, int H, class F>
inline typename Isa::Lanes Combine(typename Isa::Lanes v, F f) {
  if constexpr (H <= 8) v = f(v, Isa::template Swap<8>(v));
  if constexpr (H <= 4) v = f(v, Isa::template Swap<4>(v));
  if constexpr (H <= 2) v = f(v, Isa::template Swap<2>(v));
  if constexpr (H <= 1) v = f(v, Isa::template Swap<1>(v));
  return v;
}

// Scores → probabilities; brings m and l of the heads up to date. `change`: what their outputs so far are
// multiplied by.
template <class Isa, int H>
inline void Softmax(const AttentionTileArgs& args, const Heads<H>& heads, SlotValues<H>& s, float change[H]) {
  using Lanes = typename Isa::Lanes;
  float* const values = s.value[0];
  alignas(64) float m[kLanes16], l[kLanes16];
  for (int lane = 0; lane < kLanes16; ++lane) {
    m[lane] = args.m[heads.head[lane % H]];
    l[lane] = args.l[heads.head[lane % H]];
  }
  const Lanes before = Isa::LoadF32(m);
  // NaNs are passed over; −0 is made +0.
  Lanes largest = Isa::Set(kMinusInfinity);
  for (int i = 0; i < kSlots * H; i += kLanes16) largest = Isa::Max(Isa::LoadF32(values + i), largest);
  largest = Combine<Isa, H>(largest, [](Lanes a, Lanes b) { return Isa::Max(a, b); });
  largest = Isa::Add(Isa::Max(largest, before), Isa::Set(0.0f));
  const Lanes factor = Isa::Exp(Isa::Subtract(before, largest));

  // Slot i to lane i mod 16 of a sum: sixteen slots are H registers.
  Lanes sums[H];
  for (int r = 0; r < H; ++r) sums[r] = Isa::Set(0.0f);
  for (int i = 0; i < kSlots * H; i += kLanes16 * H) {
    for (int r = 0; r < H; ++r) {
      const Lanes p = Isa::Exp(Isa::Subtract(Isa::LoadF32(values + i + r * kLanes16), largest));
      Isa::Store(values + i + r * kLanes16, p);
      sums[r] = Isa::Add(sums[r], p);
    }
  }
  for (int half = H / 2; half > 0; half /= 2) {
    for (int r = 0; r < half; ++r) sums[r] = Isa::Add(sums[r], sums[r + half]);
  }
  const Lanes sum = Combine<Isa, H>(sums[0], [](Lanes a, Lanes b) { return Isa::Add(a, b); });
  alignas(64) float factors[kLanes16];
  Isa::Store(factors, factor);
  Isa::Store(m, largest);
  Isa::Store(l, Isa::Fma(Isa::LoadF32(l), factor, sum));
  for (int h = 0; h < H; ++h) {
    change[h] = factors[h];
    args.m[heads.head[h]] = m[h];
    args.l[heads.head[h]] = l[h];
  }
}

// What the values are added to, and their weights: one slot's are kPitch floats behind those of the one
// before.
template <int H, int kPitch = H>
struct Weighted {
  const float* p;
  int first, last;  // slots
  int heads;        // that are not there several times
  float change[H];
  float* o[H];  // [v_dim] each
};

// o = o · change + Σ p · v over the visible slots, N · 16 columns from j on. j lies in the half kHalf of its
// block of 32.
template <class Isa, int N, int kHalf, class Element, int kColumns, int H, int kPitch, class AnyAhead>
[[gnu::always_inline]] inline void AddValues(const Rows<Element, kColumns>& values, const TileScales& scales,
                                             const Weighted<H, kPitch>& to, AnyAhead& ahead, int j) {
  typename Isa::Lanes acc[H * N];
  Times<H * N>([&]<int a>() __attribute__((always_inline)) {
    acc[a] = Isa::Multiply(Isa::LoadF32(to.o[a / N] + j + 16 * (a % N)), Isa::Set(to.change[a / N]));
  });
  const std::byte* row = values.row(to.first);
  for (int i = to.first; i < to.last; ++i, row += values.distance()) {
    ahead.Step();
    typename Isa::Lanes v[N];
    Times<N>([&]<int n>() __attribute__((always_inline)) {
      v[n] = Element::template Load<Isa, (kHalf + n) % 2>(row, scales.value[0] + i, j + 16 * n);
    });
    Times<H>([&]<int h>() __attribute__((always_inline)) {
      const typename Isa::Lanes p = Isa::Set(to.p[i * kPitch + h]);
      Times<N>([&]<int n>()
                   __attribute__((always_inline)) { acc[h * N + n] = Isa::Fma(p, v[n], acc[h * N + n]); });
    });
  }
  Times<H * N>([&]<int a>()
                   __attribute__((always_inline)) { Isa::Store(to.o[a / N] + j + 16 * (a % N), acc[a]); });
}

// The last columns, fewer than 16, of one head.
template <class Isa, class Element, int kColumns, int H, int kPitch>
inline void AddLastValues(const Rows<Element, kColumns>& values, const TileScales& scales,
                          const Weighted<H, kPitch>& to, int h, int j) {
  const int64_t n = values.columns() - j;
  alignas(64) float columns[16] = {};
  std::memcpy(columns, to.o[h] + j, static_cast<size_t>(n) * sizeof(float));
  typename Isa::Lanes acc = Isa::Multiply(Isa::LoadF32(columns), Isa::Set(to.change[h]));
  for (int i = to.first; i < to.last; ++i) {
    const auto v = LoadLastElements<Isa, Element>(values.row(i), scales.value[0] + i, j, n);
    acc = Isa::Fma(Isa::Set(to.p[i * kPitch + h]), v, acc);
  }
  Isa::Store(columns, acc);
  std::memcpy(to.o[h] + j, columns, static_cast<size_t>(n) * sizeof(float));
}

// All whole runs of N · 16 columns from j on, N even, then of fewer. Returns where it ends: fewer than 32 are
// left.
template <class Isa, int N, class Element, int kColumns, int H, int kPitch, class AnyAhead>
inline int AddWideValues(const Rows<Element, kColumns>& values, const TileScales& scales,
                         const Weighted<H, kPitch>& to, AnyAhead& ahead, int j) {
  for (; j + 16 * N <= values.columns(); j += 16 * N) AddValues<Isa, N, 0>(values, scales, to, ahead, j);
  if constexpr (N > 2 && (kColumns == 0 || kColumns % (16 * N) != 0))
    return AddWideValues<Isa, N / 2>(values, scales, to, ahead, j);
  return j;
}

// The most runs of 16 columns that are worked on at once, of H heads.
template <class Isa, int H>
constexpr int WidestValues() {
  constexpr int kMost = Isa::kAccumulators / H;
  return kMost < 2 ? 1 : kMost < 8 ? kMost : 8;
}

// All columns.
template <class Isa, class Element, int kColumns, int H, int kPitch, class AnyAhead>
[[gnu::always_inline]] inline void AddColumns(const Rows<Element, kColumns>& values, const TileScales& scales,
                                              const Weighted<H, kPitch>& to, AnyAhead& ahead) {
  const int columns = values.columns();
  constexpr int kWidest = WidestValues<Isa, H>();
  int j = 0;
  if constexpr (kWidest >= 2) j = AddWideValues<Isa, kWidest>(values, scales, to, ahead, j);
  for (; j + 32 <= columns; j += 32) {
    AddValues<Isa, 1, 0>(values, scales, to, ahead, j);
    AddValues<Isa, 1, 1>(values, scales, to, ahead, j + 16);
  }
  if (j + 16 <= columns) {
    AddValues<Isa, 1, 0>(values, scales, to, ahead, j);
    j += 16;
  }
  if (j == columns) return;
  for (int h = 0; h < to.heads; ++h) AddLastValues<Isa>(values, scales, to, h, j);
}

// The scores and the sums are two functions for each type, so that types combine without a kernel for each
// pair.
template <class Isa, class Element, int H, int kColumns>
[[gnu::noinline]] void AddAllValues(const AttentionTileArgs& args, const Weighted<H>& to) {
  const Rows<Element, kColumns> values{args.v, args.v_dim, args.v_row_bytes};
  TileScales scales;
  GatherScales<Isa, Element>(args.v, values.distance(), values.blocks(), to.first, to.last, scales.value);
  Ahead ahead(Element::kBytes == 0, args.v, kSlots * values.distance(), args.next,
              kSlots * (args.scores != nullptr ? args.v_row_bytes : args.k_row_bytes),
              std::max(1, values.columns() / (16 * WidestValues<Isa, H>())) * (to.last - to.first));
  AddColumns<Isa>(values, scales, to, ahead);
}

template <class Isa, int H>
inline void AttendHeads(const AttentionTileArgs& args, const Heads<H>& heads) {
  SlotValues<H> p;
  if (args.scores == nullptr) {
    ScoreHeads<Isa, H>(args, heads, p);
  } else {
    LoadScores<H>(args, heads, p);
  }
  HideSlots<H>(args.first, args.last, p);
  Weighted<H> to{.p = p.value[0], .first = args.first, .last = args.last, .heads = heads.count};
  Softmax<Isa, H>(args, heads, p, to.change);
  for (int h = 0; h < H; ++h) to.o[h] = args.o + static_cast<int64_t>(heads.head[h]) * args.v_dim;
  WithRows(args.v_type, args.v_dim, args.v_row_bytes,
           [&]<class Element, int kColumns>() { AddAllValues<Isa, Element, H, kColumns>(args, to); });
}

// The visible ones to memory.
template <class Isa, int H>
inline void StoreScores(const AttentionTileArgs& args, const Heads<H>& heads) {
  SlotValues<H> s;
  ScoreHeads<Isa, H>(args, heads, s);
  for (int h = 0; h < heads.count; ++h) {
    float* const scores = args.scores + heads.head[h] * kSlots;
    for (int i = args.first; i < args.last; ++i) scores[i] = s.value[i][h];
  }
}

// Calls f(Heads) for all heads, as many at a time as Isa has room for.
template <class Isa, class F>
inline void ForEachGroup(const AttentionTileArgs& args, F f) {
  for (int first = 0; first < args.heads;) {
    const int left = args.heads - first;
    const int count = std::min(left, Isa::kHeads);
    if constexpr (Isa::kHeads >= 8) {
      if (count > 4) f(Heads<8>(first, count));
    }
    if (count > 2 && count <= 4) f(Heads<4>(first, count));
    if (count == 2) f(Heads<2>(first, count));
    if (count == 1) f(Heads<1>(first, count));
    first += count;
  }
}

template <class Isa>
inline void AttendTile(const AttentionTileArgs& args) {
  ForEachGroup<Isa>(args, [&]<int H>(const Heads<H>& heads) { AttendHeads<Isa, H>(args, heads); });
}

template <class Isa>
inline void ScoreTile(const AttentionTileArgs& args) {
  ForEachGroup<Isa>(args, [&]<int H>(const Heads<H>& heads) { StoreScores<Isa, H>(args, heads); });
}

}  // namespace
}  // namespace sluice::kernels
