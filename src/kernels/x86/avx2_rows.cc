// Everything that works on one row of floats, on AVX2: quantising activations, norms, gates, rotation. The
// AVX-512 table uses these too: they take a percent of a token's time.
#include "kernels/x86/avx2.h"
#include "kernels/x86/isa_avx2.h"
#include "kernels/x86/math256.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels::avx2 {
namespace {

// y[i] = f(x[i]) [· up[i]], eight at a time; the rest of the row in a copy that zeros fill up.
template <class F>
inline void Map(const float* x, const float* up, int64_t n, float* y, F f) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256 v = f(_mm256_loadu_ps(x + i));
    if (up != nullptr) v = _mm256_mul_ps(v, _mm256_loadu_ps(up + i));
    _mm256_storeu_ps(y + i, v);
  }
  if (i == n) return;
  const size_t bytes = static_cast<size_t>(n - i) * sizeof(float);
  alignas(32) float copy[8] = {};
  alignas(32) float factor[8] = {};
  std::memcpy(copy, x + i, bytes);
  if (up != nullptr) std::memcpy(factor, up + i, bytes);
  __m256 v = f(_mm256_load_ps(copy));
  if (up != nullptr) v = _mm256_mul_ps(v, _mm256_load_ps(factor));
  _mm256_store_ps(copy, v);
  std::memcpy(y + i, copy, bytes);
}

// The last n < 16 elements of a row, filled up with zeros.
Avx2::Lanes LastLanes(const float* x, int64_t n) {
  alignas(32) float copy[16] = {};
  std::memcpy(copy, x, static_cast<size_t>(n) * sizeof(float));
  return Avx2::LoadF32(copy);
}

float SumOfSquares(const float* x, int64_t n) {
  Avx2::Lanes sum = Avx2::Set(0.0f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Avx2::Lanes v = Avx2::LoadF32(x + i);
    sum = Avx2::Fma(v, v, sum);
  }
  if (i < n) {
    const Avx2::Lanes v = LastLanes(x + i, n - i);
    sum = Avx2::Fma(v, v, sum);
  }
  return Avx2::Fold(sum);
}

float Sum(const float* x, int64_t n) {
  Avx2::Lanes sum = Avx2::Set(0.0f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) sum = Avx2::Add(sum, Avx2::LoadF32(x + i));
  if (i < n) sum = Avx2::Add(sum, LastLanes(x + i, n - i));
  return Avx2::Fold(sum);
}

// Σ16 (x − mean)²; the filling zeros are of the difference.
float SumOfSquaredDifferences(const float* x, int64_t n, float mean) {
  const Avx2::Lanes minus_mean = Avx2::Set(-mean);
  Avx2::Lanes sum = Avx2::Set(0.0f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Avx2::Lanes v = Avx2::Add(Avx2::LoadF32(x + i), minus_mean);
    sum = Avx2::Fma(v, v, sum);
  }
  if (i < n) {
    alignas(32) float rest[16] = {};
    for (int64_t j = i; j < n; ++j) rest[j - i] = x[j] - mean;
    const Avx2::Lanes v = Avx2::LoadF32(rest);
    sum = Avx2::Fma(v, v, sum);
  }
  return Avx2::Fold(sum);
}

float SquareRoot(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

__m256i Magnitudes(const float* x) { return _mm256_and_si256(Load256(x), _mm256_set1_epi32(0x7fffffff)); }

uint32_t LargestMagnitude(const float* x, int length) {
  __m256i a = _mm256_setzero_si256();
  __m256i b = _mm256_setzero_si256();
  for (int i = 0; i < length; i += 16) {
    a = _mm256_max_epi32(a, Magnitudes(x + i));
    b = _mm256_max_epi32(b, Magnitudes(x + i + 8));
  }
  a = _mm256_max_epi32(a, b);
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
}

// 32 floats → 32 bytes and the two sums of 16.
void Quantize32(const float* x, __m256 inverse, int8_t* q, int16_t* sums) {
  const auto round = [&](int i) {
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), inverse));
  };
  const __m256i words0 = _mm256_packs_epi32(round(0), round(8));
  const __m256i words1 = _mm256_packs_epi32(round(16), round(24));
  // The packs worked within halves: 4-byte pieces 0 2 4 6 | 1 3 5 7 go back in order.
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(words0, words1),
                                                    _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  Store256(q, bytes);
  const __m256i ones = _mm256_set1_epi8(1);
  __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(ones, bytes), _mm256_set1_epi16(1));
  sum = _mm256_hadd_epi32(sum, sum);
  sum = _mm256_hadd_epi32(sum, sum);
  sums[0] = static_cast<int16_t>(_mm256_extract_epi32(sum, 0));
  sums[1] = static_cast<int16_t>(_mm256_extract_epi32(sum, 4));
}

}  // namespace

void QuantizeRow(ActivationKind kind, const float* x, int64_t columns, int8_t* q, float* scale,
                 int16_t* sums) {
  const int length = BlockLength(kind);
  for (int64_t i = 0; i < columns; i += length) {
    const uint32_t bits = LargestMagnitude(x + i, length);
    float amax;
    std::memcpy(&amax, &bits, sizeof(amax));
    const float d = amax / 127.0f;
    const bool finite = bits < 0x7f800000u;
    if (finite && d >= 0x1p-126f) {
      scale[i / length] = d;
      const __m256 inverse = _mm256_set1_ps(1.0f / d);
      for (int64_t j = i; j < i + length; j += 32) Quantize32(x + j, inverse, q + j, sums + j / 16);
    } else {
      scale[i / length] = finite ? 0.0f : __builtin_nanf("");
      std::memset(q + i, 0, static_cast<size_t>(length));
      std::memset(sums + i / 16, 0, static_cast<size_t>(length / 16) * sizeof(int16_t));
    }
  }
}

void F32ToF16Row(const float* x, int64_t n, uint16_t* y) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), h);
  }
  for (; i < n; ++i) y[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
}

void RmsNorm(const float* x, const float* weight, int64_t n, float eps, float* y) {
  const float r = 1.0f / SquareRoot(SumOfSquares(x, n) / static_cast<float>(n) + eps);
  const __m256 factor = _mm256_set1_ps(r);
  Map(x, weight, n, y, [&](__m256 v) { return _mm256_mul_ps(v, factor); });
}

void LayerNorm(const float* x, const float* weight, const float* bias, int64_t n, float eps, float* y) {
  const float mean = Sum(x, n) / static_cast<float>(n);
  const float r = 1.0f / SquareRoot(SumOfSquaredDifferences(x, n, mean) / static_cast<float>(n) + eps);
  const __m256 means = _mm256_set1_ps(mean);
  const __m256 factor = _mm256_set1_ps(r);
  Map(x, weight, n, y, [&](__m256 v) { return _mm256_mul_ps(_mm256_sub_ps(v, means), factor); });
  if (bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = y[i] + bias[i];
  }
}

void Silu(const float* gate, const float* up, int64_t n, float* y) {
  const __m256 one = _mm256_set1_ps(1.0f);
  Map(gate, up, n, y,
      [&](__m256 x) { return _mm256_div_ps(x, _mm256_add_ps(one, Exp(_mm256_xor_ps(SignBit(), x)))); });
}

void GeluTanh(const float* gate, const float* up, int64_t n, float* y) {
  const __m256 one = _mm256_set1_ps(1.0f);
  Map(gate, up, n, y, [&](__m256 x) {
    const __m256 cube = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_set1_ps(0.044715f), x), x, one);
    const __m256 u = _mm256_mul_ps(_mm256_mul_ps(x, _mm256_set1_ps(-1.5957691216057308f)), cube);
    return _mm256_div_ps(x, _mm256_add_ps(one, Exp(u)));
  });
}

void GeluErf(const float* gate, const float* up, int64_t n, float* y) {
  Map(gate, up, n, y, [&](__m256 x) {
    const __m256 erf = Erf(_mm256_mul_ps(x, _mm256_set1_ps(0.70710678118654752f)));
    return _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.5f), x), _mm256_add_ps(_mm256_set1_ps(1.0f), erf));
  });
}

void ReluSquared(const float* gate, const float* up, int64_t n, float* y) {
  Map(gate, up, n, y, [&](__m256 x) {
    const __m256 v = _mm256_max_ps(_mm256_setzero_ps(), x);  // the second operand when unordered or equal
    return _mm256_mul_ps(v, v);
  });
}

void Softcap(const float* x, int64_t n, float cap, float* y) {
  const __m256 caps = _mm256_set1_ps(cap);
  Map(x, nullptr, n, y, [&](__m256 v) { return _mm256_mul_ps(caps, Tanh(_mm256_div_ps(v, caps))); });
}

void RopeInterleaved(float* x, const float* cos, const float* sin, int64_t pairs) {
  const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  int64_t i = 0;
  for (; i + 4 <= pairs; i += 4) {
    const __m256 c = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(cos + i)), twice);
    const __m256 s = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(sin + i)), twice);
    const __m256 v = _mm256_loadu_ps(x + 2 * i);
    const __m256 swapped = _mm256_permute_ps(v, 0xb1);
    _mm256_storeu_ps(x + 2 * i, _mm256_fmaddsub_ps(v, c, _mm256_mul_ps(swapped, s)));
  }
  for (; i < pairs; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = __builtin_fmaf(a, cos[i], -(b * sin[i]));
    x[2 * i + 1] = __builtin_fmaf(b, cos[i], a * sin[i]);
  }
}

void RopeHalf(float* x, const float* cos, const float* sin, int64_t pairs) {
  int64_t i = 0;
  for (; i + 8 <= pairs; i += 8) {
    const __m256 c = _mm256_loadu_ps(cos + i);
    const __m256 s = _mm256_loadu_ps(sin + i);
    const __m256 a = _mm256_loadu_ps(x + i);
    const __m256 b = _mm256_loadu_ps(x + i + pairs);
    _mm256_storeu_ps(x + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
    _mm256_storeu_ps(x + i + pairs, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
  }
  for (; i < pairs; ++i) {
    const float a = x[i];
    const float b = x[i + pairs];
    x[i] = __builtin_fmaf(a, cos[i], -(b * sin[i]));
    x[i + pairs] = __builtin_fmaf(b, cos[i], a * sin[i]);
  }
}

}  // namespace sluice::kernels::avx2
