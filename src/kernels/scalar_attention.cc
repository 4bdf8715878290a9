// One tile of attention (kernels.h; docs/arithmetic.md, "Attention").
#include <cmath>

#include "base/math.h"
#include "kernels/attention_rows.h"
#include "kernels/kv_rows.h"
#include "kernels/lanes.h"
#include "kernels/scalar.h"

namespace sluice::kernels::scalar {
namespace {

// The score of one visible slot for query head h.
float Score(const AttentionTileArgs& args, int h, int slot) {
  const float* q = args.q + h * args.q_stride;
  float k[kMaxHeadDim];
  LoadKvRow(args.k_type, args.k + static_cast<size_t>(slot) * args.k_row_bytes, args.k_dim, k);
  float s = Dot16(
      args.k_dim, [&](int64_t i) { return q[i]; }, [&](int64_t i) { return k[i]; });
  s = s * args.scale;
  if (args.softcap > 0.0f) s = args.softcap * Tanh(s / args.softcap);
  if (args.alibi_slopes != nullptr) {
    s = std::fma(args.alibi_slopes[h], static_cast<float>(args.first_distance + (slot - args.first)), s);
  }
  return s;
}

}  // namespace

void AttentionTile(const AttentionTileArgs& args) {
  for (int h = 0; h < args.heads; ++h) {
    float p[kTileSlots];
    float m = args.m[h];
    for (int i = args.first; i < args.last; ++i) {
      p[i] = args.scores != nullptr ? args.scores[h * kTileSlots + i] : Score(args, h, i);
      m = p[i] > m ? p[i] : m;  // a NaN score is passed over here and comes out through l and o
    }
    m = m + 0.0f;  // one zero, whatever the order of the maximum
    const float c = Exp(args.m[h] - m);

    Lanes sums;
    for (int i = args.first; i < args.last; ++i) {
      p[i] = Exp(p[i] - m);
      sums.lane[i % kLanes] = sums.lane[i % kLanes] + p[i];
    }
    args.m[h] = m;
    args.l[h] = std::fma(args.l[h], c, sums.Fold());

    float* o = args.o + static_cast<int64_t>(h) * args.v_dim;
    for (int j = 0; j < args.v_dim; ++j) o[j] = o[j] * c;
    for (int i = args.first; i < args.last; ++i) {
      float v[kMaxHeadDim];
      LoadKvRow(args.v_type, args.v + static_cast<size_t>(i) * args.v_row_bytes, args.v_dim, v);
      for (int j = 0; j < args.v_dim; ++j) o[j] = std::fma(p[i], v[j], o[j]);
    }
  }
}

void AttentionRows(const AttentionRowsArgs& args) { AttendRowByRow(AttentionTile, args); }

void AttentionScores(const AttentionTileArgs& args) {
  for (int h = 0; h < args.heads; ++h) {
    for (int i = args.first; i < args.last; ++i) args.scores[h * kTileSlots + i] = Score(args, h, i);
  }
}

void AttentionMerge(float* o, float a, const float* chunk, float b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) o[i] = std::fma(o[i], a, chunk[i] * b);
}

}  // namespace sluice::kernels::scalar
