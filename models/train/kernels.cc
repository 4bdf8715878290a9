// Element-wise parts of a training step in bfloat16, forward and backward, for `fused.py`.
//
// Each function makes one pass over memory where torch makes several. Tensors are dense, bfloat16 unless float is said;
// sums are in float. Every function is called from one thread and spreads rows over OpenMP's threads itself.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using Bf16 = uint16_t;

inline float Float(Bf16 x) {
  uint32_t u = uint32_t(x) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

inline Bf16 Round(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return Bf16((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

}  // namespace

extern "C" {

// sum = x + a (a may be null: then sum is not written and x is normalised), y = sum * rstd * w.  [n, d], rstd float [n]
void AddNorm(const Bf16* x, const Bf16* a, const Bf16* w, Bf16* sum, Bf16* y, float* rstd, int64_t n, int64_t d, float eps) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; ++i) {
    const Bf16* row = x + i * d;
    if (a) {
      for (int64_t j = 0; j < d; ++j) sum[i * d + j] = Round(Float(row[j]) + Float(a[i * d + j]));
      row = sum + i * d;
    }
    float total = 0;
    for (int64_t j = 0; j < d; ++j) total += Float(row[j]) * Float(row[j]);
    const float r = 1.0f / std::sqrt(total / d + eps);
    rstd[i] = r;
    for (int64_t j = 0; j < d; ++j) y[i * d + j] = Round(Float(row[j]) * r * Float(w[j]));
  }
}

// dx = dsum (may be null) + the gradient through the norm; dw float [d] is added to.
void AddNormBackward(const Bf16* dsum, const Bf16* dy, const Bf16* sum, const Bf16* w, const float* rstd, Bf16* dx,
                     float* dw, int64_t n, int64_t d) {
#pragma omp parallel
  {
    std::vector<float> mine(d, 0.0f);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
      const Bf16* g = dy + i * d;
      const Bf16* s = sum + i * d;
      const float r = rstd[i];
      float dot = 0;
      for (int64_t j = 0; j < d; ++j) {
        const float gs = Float(g[j]) * Float(s[j]);
        mine[j] += gs * r;
        dot += gs * Float(w[j]);
      }
      const float c = dot * r * r / d;
      if (dsum) {
        for (int64_t j = 0; j < d; ++j)
          dx[i * d + j] = Round(Float(dsum[i * d + j]) + r * (Float(g[j]) * Float(w[j]) - Float(s[j]) * c));
      } else {
        for (int64_t j = 0; j < d; ++j) dx[i * d + j] = Round(r * (Float(g[j]) * Float(w[j]) - Float(s[j]) * c));
      }
    }
#pragma omp critical
    for (int64_t j = 0; j < d; ++j) dw[j] += mine[j];
  }
}

// qkv [b, t, (heads + 2 * kv) * hd] -> q [b, heads, t, hd], k and v [b, kv, t, hd]; q and k turned by pairs (2i, 2i+1).
// With `back`, the reverse: q, k, v are gradients and qkv is written.
void SplitRope(Bf16* qkv, Bf16* q, Bf16* k, Bf16* v, const float* cos, const float* sin, int64_t b, int64_t t, int64_t heads,
               int64_t kv, int64_t hd, int back) {
  const int64_t all = heads + 2 * kv;
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t i = 0; i < b; ++i) {
    for (int64_t p = 0; p < t; ++p) {
      for (int64_t h = 0; h < all; ++h) {
        Bf16* packed = qkv + ((i * t + p) * all + h) * hd;
        Bf16* split = h < heads        ? q + ((i * heads + h) * t + p) * hd
                      : h < heads + kv ? k + ((i * kv + h - heads) * t + p) * hd
                                       : v + ((i * kv + h - heads - kv) * t + p) * hd;
        const Bf16* from = back ? split : packed;
        Bf16* to = back ? packed : split;
        if (h >= heads + kv) {
          std::memcpy(to, from, hd * sizeof(Bf16));
          continue;
        }
        for (int64_t j = 0; j < hd / 2; ++j) {
          const float c = cos[p * (hd / 2) + j], s = back ? -sin[p * (hd / 2) + j] : sin[p * (hd / 2) + j];
          const float x = Float(from[2 * j]), y = Float(from[2 * j + 1]);
          to[2 * j] = Round(x * c - y * s);
          to[2 * j + 1] = Round(x * s + y * c);
        }
      }
    }
  }
}

// scores [n, t, t] -> probabilities in place; what lies in the future becomes 0.
void CausalSoftmax(Bf16* scores, int64_t n, int64_t t, float scale) {
#pragma omp parallel
  {
    std::vector<float> e(t);
#pragma omp for collapse(2) schedule(dynamic, 64)
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t p = 0; p < t; ++p) {
        Bf16* row = scores + (i * t + p) * t;
        float top = -INFINITY;
        for (int64_t j = 0; j <= p; ++j) top = std::fmax(top, Float(row[j]));
        float sum = 0;
        for (int64_t j = 0; j <= p; ++j) {
          e[j] = std::exp((Float(row[j]) - top) * scale);
          sum += e[j];
        }
        const float inverse = 1.0f / sum;
        for (int64_t j = 0; j <= p; ++j) row[j] = Round(e[j] * inverse);
        std::memset(row + p + 1, 0, (t - 1 - p) * sizeof(Bf16));
      }
    }
  }
}

// dp becomes the gradient of the scores, in place.
void CausalSoftmaxBackward(const Bf16* prob, Bf16* dp, int64_t n, int64_t t, float scale) {
#pragma omp parallel for collapse(2) schedule(dynamic, 64)
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t p = 0; p < t; ++p) {
      const Bf16* a = prob + (i * t + p) * t;
      Bf16* g = dp + (i * t + p) * t;
      float dot = 0;
      for (int64_t j = 0; j <= p; ++j) dot += Float(a[j]) * Float(g[j]);
      for (int64_t j = 0; j <= p; ++j) g[j] = Round(Float(a[j]) * (Float(g[j]) - dot) * scale);
      std::memset(g + p + 1, 0, (t - 1 - p) * sizeof(Bf16));
    }
  }
}

// gate_up [n, 2f] -> y [n, f] = silu(gate) * up
void SwiGlu(const Bf16* gate_up, Bf16* y, int64_t n, int64_t f) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; ++i) {
    const Bf16 *g = gate_up + i * 2 * f, *u = g + f;
    for (int64_t j = 0; j < f; ++j) {
      const float x = Float(g[j]);
      y[i * f + j] = Round(x / (1.0f + std::exp(-x)) * Float(u[j]));
    }
  }
}

void SwiGluBackward(const Bf16* gate_up, const Bf16* dy, Bf16* dgate_up, int64_t n, int64_t f) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; ++i) {
    const Bf16 *g = gate_up + i * 2 * f, *u = g + f, *d = dy + i * f;
    Bf16 *dg = dgate_up + i * 2 * f, *du = dg + f;
    for (int64_t j = 0; j < f; ++j) {
      const float x = Float(g[j]), up = Float(u[j]), out = Float(d[j]);
      const float s = 1.0f / (1.0f + std::exp(-x));
      dg[j] = Round(out * up * s * (1.0f + x * (1.0f - s)));
      du[j] = Round(out * x * s);
    }
  }
}

// logits [n, v] become weight * (softmax - one_hot(target)) in place; loss float [n] is weight * -log p(target).
void CrossEntropy(Bf16* logits, const int64_t* target, const float* weight, float* loss, int64_t n, int64_t v) {
#pragma omp parallel
  {
    std::vector<float> e(v);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
      Bf16* row = logits + i * v;
      float top = -INFINITY;
      for (int64_t j = 0; j < v; ++j) top = std::fmax(top, Float(row[j]));
      float sum = 0;
      for (int64_t j = 0; j < v; ++j) {
        e[j] = std::exp(Float(row[j]) - top);
        sum += e[j];
      }
      loss[i] = weight[i] * (std::log(sum) - (Float(row[target[i]]) - top));
      e[target[i]] -= sum;
      const float c = weight[i] / sum;
      for (int64_t j = 0; j < v; ++j) row[j] = Round(e[j] * c);
    }
  }
}

}  // extern "C"
