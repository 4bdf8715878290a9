// Kernels: the innermost loops, as one const table of function pointers for each instruction set.
//
// Every table gives the same bits as the scalar one, for all inputs (docs/arithmetic.md fixes the order of
// every float operation; NaNs count as equal). Kernels cannot fail and do not allocate: shapes were checked
// when the model was loaded. They may be called from any thread, on disjoint outputs. The caller has set
// rounding to nearest and left subnormals alone (platform/fp_env.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "formats/dtype.h"
#include "platform/cpu_features.h"

namespace sluice::kernels {

// How the activations that meet a weight format are held.
enum class ActivationKind : uint8_t {
  kF32,     // F32, F16, BF16 weights
  kQ8x32,   // 32-element formats and NVFP4: int8, one f32 scale for 32 elements
  kQ8x64,   // Q2_0
  kQ8x128,  // Q1_0
  kQ8x256,  // super-block formats
};
constexpr int BlockLength(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kF32:
      return 1;
    case ActivationKind::kQ8x32:
      return 32;
    case ActivationKind::kQ8x64:
      return 64;
    case ActivationKind::kQ8x128:
      return 128;
    case ActivationKind::kQ8x256:
      return 256;
  }
  return 1;
}
ActivationKind ActivationKindFor(formats::DType weight);

// How large sums of products of a block of 256 activations can become: kernels may add up more of them in 16
// bits where that is certain to fit.
struct Reach {
  int16_t of_16;  // the most that the magnitudes of a run of 16 amount to
  int16_t of_32;  // the most that those of one sign in a run of 32 amount to
};

// A batch of activation rows, in one of the forms above. A view.
struct ActivationRows {
  ActivationKind kind = ActivationKind::kF32;
  int64_t batch = 0;
  int64_t columns = 0;
  const float* f32 = nullptr;     // kF32: [batch, columns]
  const int8_t* q = nullptr;      // else: [batch, columns], −127 … 127
  const float* scale = nullptr;   //       [batch, columns / BlockLength(kind)]
  const int16_t* sums = nullptr;  //       [batch, columns / 16], the sum of each 16 consecutive q
  const Reach* reach = nullptr;   // kQ8x256: [batch, columns / 256], a hint, or null
};

// y[b * y_stride + r] = Σ_c weights[r, c] · x[b, c] for r in [0, rows), b in [0, x.batch).
struct MatmulArgs {
  const std::byte* weights;  // [rows, x.columns], the file's own layout
  size_t row_bytes;          // from one row to the next
  int64_t rows;
  ActivationRows x;  // x.kind == ActivationKindFor(the weights' type)
  float* y;
  int64_t y_stride;
  std::span<std::byte>
      scratch;  // kMatmulScratchBytes, 64-byte aligned, this thread's own; contents don't matter
};
inline constexpr size_t kMatmulScratchBytes = 1088 * 1024;
using MatmulFn = void (*)(const MatmulArgs&);

// Types of keys and values that attention reads as they lie in the cache. How rows are written: kv_rows.h.
enum class KvType : uint8_t { kF32, kF16, kQ8_0, kQ5_0, kQ4_0 };
inline constexpr size_t kKvTypeCount = 5;
// Most elements of one head's key or value.
inline constexpr int kMaxHeadDim = 1024;

// One tile of attention with an online softmax: the visible keys of one KV head among 64 consecutive absolute
// positions, against the query heads of its group at one position. Keys and values of any type become the
// floats that they stand for, exactly; q stays f32. Arithmetic (docs/arithmetic.md, "Attention"):
//   s_i = dot16(q, k_i) · scale
//
//   s_i = softcap · tanh(s_i / softcap) when softcap > 0; s_i = s_i + slope · distance_i
//
//   m' = max(m, max s_i); c = exp(m − m'); p_i = exp(s_i − m')
//
//   l = fma(l, c, Σ16 p_i) with lane (first + i) mod 16
//
//   o = o · c, then o = fma(p_i, v_i, o) by ascending i
//
// where dot16 and Σ16 use the 16 virtual lanes.
struct AttentionTileArgs {
  const float* q;    // [heads, k_dim], query heads that share the KV head
  int64_t q_stride;  // floats from one head to the next
  int heads;
  int k_dim;
  int v_dim;
  KvType k_type;
  KvType v_type;
  const std::byte* k;  // the tile's 64 slots: [64, k_dim] of k_type, k_row_bytes (≥ KvRowBytes) apart
  size_t k_row_bytes;
  const std::byte* v;  // [64, v_dim] of v_type
  size_t v_row_bytes;
  int first, last;  // visible slots [first, last), 0 ≤ first < last ≤ 64
  float scale;
  float softcap;              // 0 = none
  const float* alibi_slopes;  // [heads] or null
  int64_t first_distance;  // (absolute position of slot `first`) − (query position), ≤ 0; used with slopes
  float* m;                // [heads] running maximum, −infinity when fresh
  float* l;                // [heads] running sum, 0 when fresh
  float* o;                // [heads, v_dim] running output, unnormalised, 0 when fresh
  // [heads, 64], only the visible slots: the scores s_i, where they were computed beforehand; null: from q
  // and k.
  float* scores;
  // A hint, or null: what of another tile will be read right after this one, so that it can be had from
  // memory meanwhile: its 64 rows of keys, or of values where scores are given to attention_tile.
  const std::byte* next = nullptr;
};
inline constexpr int kTileSlots = 64;
using AttentionTileFn = void (*)(const AttentionTileArgs&);

// What one row of queries sees of a tile: slots [first, last), none where they are equal.
struct VisibleSlots {
  int first, last;         // 0 ≤ first ≤ last ≤ 64
  int64_t first_distance;  // as in AttentionTileArgs
};

// The same tile for the queries of several rows, which see parts of it that may differ: it is read and
// widened once for all of them. Each row comes to the bits that attention_tile gives it alone; one that sees
// nothing is left as it is.
struct AttentionRowsArgs {
  AttentionTileArgs tile;       // of row 0, without scores; first, last and first_distance are not read
  int rows;                     // q as below; m, l: [rows, heads]; o: [rows, heads, v_dim]
  int64_t q_row_stride;         // floats from one row's queries to the next one's
  const VisibleSlots* visible;  // [rows]
  float* scratch;               // AttentionRowsScratch(rows · heads, k_dim, v_dim), 64-byte aligned
  bool new_queries;             // false: those of the call before, which was given the same scratch
  // A hint as tile.next, or null: the values of that tile.
  const std::byte* next_values = nullptr;
};
constexpr size_t AttentionRowsScratch(int queries, int k_dim, int v_dim) {
  const auto whole = [](int n) { return static_cast<size_t>((n + 15) / 16 * 16); };
  return kTileSlots * (whole(k_dim) + whole(v_dim)) + whole(queries) * whole(k_dim);
}
using AttentionRowsFn = void (*)(const AttentionRowsArgs&);

struct Kernels {
  std::string_view name;  // "scalar", "avx2", "avx512vnni", "neon", "dotprod", "i8mm"
  bool (*supported)(const platform::CpuFeatures&);

  // --- activations ---
  // Quantises one row of `columns` floats (a multiple of BlockLength(kind)): scale = amax / 127,
  // q = round-half-even(x · (1 / scale)). A block with a NaN or an infinity gets scale NaN and q 0. Sums as
  // in ActivationRows.
  void (*quantize_row)(ActivationKind kind, const float* x, int64_t columns, int8_t* q, float* scale,
                       int16_t* sums);
  // What a row of quantised activations (kQ8x256) can reach, block by block. Null: no use to these products.
  void (*measure_reach)(const int8_t* q, int64_t columns, Reach* reach);

  // --- products --- never null for a type that a weight matrix may have (all but the integer types and F64)
  std::array<MatmulFn, formats::kDTypeLimit> matmul;

  // --- attention ---
  AttentionTileFn attention_tile;
  AttentionRowsFn attention_rows;
  // Only the scores of a tile, into args.scores; nothing is read of v, m, l and o.
  AttentionTileFn attention_scores;
  // o = fma(o, a, chunk · b), n elements: how the outputs of two chunks of positions are merged.
  void (*attention_merge)(float* o, float a, const float* chunk, float b, int64_t n);
  // f32 → f16, round to nearest even: how keys and values enter an f16 cache.
  void (*f32_to_f16)(const float* x, int64_t n, uint16_t* y);

  // --- rows --- x and y may be the same; n is any length
  // y = (x · (1 / sqrt(Σ16 x² / n + eps))) · weight; weight may be null (= 1).
  void (*rms_norm)(const float* x, const float* weight, int64_t n, float eps, float* y);
  // y = ((x − mean) · (1 / sqrt(var + eps))) · weight + bias; weight and bias may be null.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, int64_t n, float eps, float* y);
  // Gates: y = act(gate) · up; up may be null (= no product). All through the canonical functions of
  // base/math.h.
  void (*silu)(const float* gate, const float* up, int64_t n, float* y);
  void (*gelu_tanh)(const float* gate, const float* up, int64_t n, float* y);
  void (*gelu_erf)(const float* gate, const float* up, int64_t n, float* y);
  void (*relu_squared)(const float* gate, const float* up, int64_t n, float* y);
  // y = cap · tanh(x / cap).
  void (*softcap)(const float* x, int64_t n, float cap, float* y);
  // Rotates `pairs` pairs of one head by (cos[i], sin[i]): (a, b) → (fma(a, c, −(b·s)), fma(b, c, a·s)).
  // Interleaved: a = x[2i], b = x[2i+1]. Half-split: a = x[i], b = x[i + pairs].
  void (*rope_interleaved)(float* x, const float* cos, const float* sin, int64_t pairs);
  void (*rope_half)(float* x, const float* cos, const float* sin, int64_t pairs);

  // --- peaks --- `rounds` rounds of the products' own instruction in registers alone; return the
  // multiply-adds that were done. Timed, they say what no product of this table can exceed on this machine.
  int64_t (*int8_peak)(int64_t rounds);
  int64_t (*f32_peak)(int64_t rounds);
};

// All tables that this build carries, scalar first, faster ones later.
std::span<const Kernels* const> AllKernels();
// The fastest supported on `cpu`; never null (scalar runs everywhere).
const Kernels& BestKernels(const platform::CpuFeatures& cpu);
// By name; null when this build has no such table. The caller checks `supported`.
const Kernels* FindKernels(std::string_view name);

}  // namespace sluice::kernels
