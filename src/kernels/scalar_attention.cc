// One tile of attention (kernels.h; docs/arithmetic.md, "Attention").
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/math.h"
#include "kernels/lanes.h"
#include "kernels/scalar.h"

namespace sluice::kernels::scalar {
namespace {

struct F32Element {
  static float Load(const std::byte* row, int64_t i) {
    float value;
    std::memcpy(&value, row + i * 4, sizeof(value));
    return value;
  }
};
struct F16Element {
  static float Load(const std::byte* row, int64_t i) {
    uint16_t bits;
    std::memcpy(&bits, row + i * 2, sizeof(bits));
    return F16ToF32(bits);
  }
};

// The score of one visible slot for query head h.
template <typename Element>
float Score(const AttentionTileArgs& args, int h, int slot) {
  const float* q = args.q + h * args.q_stride;
  const std::byte* k = args.k + static_cast<size_t>(slot) * args.k_row_bytes;
  float s = Dot16(
      args.k_dim, [&](int64_t i) { return q[i]; }, [&](int64_t i) { return Element::Load(k, i); });
  s = s * args.scale;
  if (args.softcap > 0.0f) s = args.softcap * Tanh(s / args.softcap);
  if (args.alibi_slopes != nullptr) {
    s = std::fma(args.alibi_slopes[h], static_cast<float>(args.first_distance + (slot - args.first)), s);
  }
  return s;
}

template <typename Element>
void AttentionTile(const AttentionTileArgs& args) {
  for (int h = 0; h < args.heads; ++h) {
    float p[64];
    float m = args.m[h];
    for (int i = args.first; i < args.last; ++i) {
      p[i] = Score<Element>(args, h, i);
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
    for (int j = 0; j < args.v_dim; ++j) {
      float acc = o[j] * c;
      for (int i = args.first; i < args.last; ++i) {
        acc = std::fma(p[i], Element::Load(args.v + static_cast<size_t>(i) * args.v_row_bytes, j), acc);
      }
      o[j] = acc;
    }
  }
}

}  // namespace

void AttentionTileF32(const AttentionTileArgs& args) { AttentionTile<F32Element>(args); }
void AttentionTileF16(const AttentionTileArgs& args) { AttentionTile<F16Element>(args); }

}  // namespace sluice::kernels::scalar
