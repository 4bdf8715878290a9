// Products with the 32-element formats, one row against one activation row: eight blocks at a time, which are the
// eight chains of the canonical order, so that a row is read as one stream. Templates of internal linkage (isa_avx2.h).
//
// A format has: kBytes of a block; Codes, its 32 codes as bytes; kSigned (codes are signed bytes) or kOffset (codes
// are unsigned and too large by that); Scales, the d of eight blocks; kHasMin and then Minimums.
#pragma once

#include "kernels/kernels.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

constexpr int kPrefetchAhead = 4096;  // bytes: far enough for the memory's latency at full speed

struct BlockQ4_0Format {
  static constexpr int kBytes = 18;
  static constexpr int kOffset = 8;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = false;
  template <class Isa>
  static inline __m256i Codes(const std::byte* block) {
    return Nibbles(block + 2);
  }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
};

struct BlockQ4_1Format {
  static constexpr int kBytes = 20;
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = true;
  template <class Isa>
  static inline __m256i Codes(const std::byte* block) {
    return Nibbles(block + 4);
  }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
  static inline __m256 Minimums(const std::byte* blocks) { return LoadHalves(blocks + 2, kBytes); }
};

struct BlockQ5_0Format {
  static constexpr int kBytes = 22;
  static constexpr int kOffset = 16;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = false;
  template <class Isa>
  static inline __m256i Codes(const std::byte* block) {
    return _mm256_or_si256(Nibbles(block + 6), Isa::SpreadBits(LoadU32(block + 2), 16));
  }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
};

struct BlockQ5_1Format {
  static constexpr int kBytes = 24;
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = true;
  template <class Isa>
  static inline __m256i Codes(const std::byte* block) {
    return _mm256_or_si256(Nibbles(block + 8), Isa::SpreadBits(LoadU32(block + 4), 16));
  }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
  static inline __m256 Minimums(const std::byte* blocks) { return LoadHalves(blocks + 2, kBytes); }
};

struct BlockQ8_0Format {
  static constexpr int kBytes = 34;
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = true;
  static constexpr bool kHasMin = false;
  template <class Isa>
  static inline __m256i Codes(const std::byte* block) {
    return Load256(block + 2);
  }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
};

// The code book of IQ4_NL and IQ4_XS.
inline __m256i Iq4Values() {
  return _mm256_broadcastsi128_si256(
      _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113));
}

struct BlockIQ4_NLFormat {
  static constexpr int kBytes = 18;
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = true;
  static constexpr bool kHasMin = false;
  template <class Isa>
  static inline __m256i Codes(const std::byte* block) {
    return _mm256_shuffle_epi8(Iq4Values(), Nibbles(block + 2));
  }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
};

struct BlockMXFP4Format {
  static constexpr int kBytes = 17;
  static constexpr int kOffset = 12;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = false;
  template <class Isa>
  static inline __m256i Codes(const std::byte* block) {
    // Twice the value of each 4-bit float, plus 12.
    const __m256i values = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    return _mm256_shuffle_epi8(values, Nibbles(block + 1));
  }
  // 2^(e − 128). For e of 0 and 1 the float is subnormal.
  static inline __m256 Scales(const std::byte* blocks) {
    alignas(32) uint32_t bits[8];
    for (int i = 0; i < 8; ++i) {
      const uint32_t e = static_cast<uint8_t>(blocks[i * kBytes]);
      bits[i] = e > 1 ? (e - 1) << 23 : 0x200000u << e;
    }
    return _mm256_load_ps(reinterpret_cast<const float*>(bits));
  }
};

// One activation row in blocks of 32.
struct Row32 {
  const int8_t* q;
  const float* scale;
  const int16_t* sums;
};

// Adds eight blocks to the eight chains.
template <class Isa, class Format>
inline __m256 AddBlocks(const std::byte* blocks, Row32 x, __m256 chains) {
  __m256i lanes[8];
  for (int i = 0; i < 8; ++i) {
    const __m256i codes = Format::template Codes<Isa>(blocks + i * Format::kBytes);
    const __m256i q = Load256(x.q + i * 32);
    lanes[i] = Format::kSigned ? Isa::DotSigned(codes, q) : Isa::DotUnsigned(codes, q);
  }
  __m256i isum = SumEach(lanes);
  constexpr int kExcess = Format::kSigned ? Isa::kSignedExcess : Format::kOffset;
  const __m256i sums = Load256(x.sums);
  if constexpr (kExcess != 0) {
    isum = _mm256_sub_epi32(isum, _mm256_madd_epi16(sums, _mm256_set1_epi16(kExcess)));
  }
  const __m256 scale = _mm256_loadu_ps(x.scale);
  chains = _mm256_fmadd_ps(_mm256_mul_ps(Format::Scales(blocks), scale), _mm256_cvtepi32_ps(isum), chains);
  if constexpr (Format::kHasMin) {
    const __m256i xsum = _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
    chains = _mm256_fmadd_ps(_mm256_mul_ps(Format::Minimums(blocks), scale), _mm256_cvtepi32_ps(xsum), chains);
  }
  return chains;
}

// The last 1 … 7 blocks of a row, filled up with zeros; the chains behind them are not touched.
template <class Isa, class Format>
inline __m256 AddLastBlocks(const std::byte* blocks, int n, Row32 x, __m256 chains) {
  alignas(32) std::byte copy[8 * Format::kBytes] = {};
  alignas(32) int8_t q[8 * 32] = {};
  alignas(32) float scale[8] = {};
  alignas(32) int16_t sums[16] = {};
  const size_t count = static_cast<size_t>(n);
  std::memcpy(copy, blocks, count * Format::kBytes);
  std::memcpy(q, x.q, count * 32);
  std::memcpy(scale, x.scale, count * sizeof(float));
  std::memcpy(sums, x.sums, count * 2 * sizeof(int16_t));
  const __m256 added = AddBlocks<Isa, Format>(copy, {q, scale, sums}, chains);
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_blendv_ps(chains, added, _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), index)));
}

template <class Isa, class Format>
inline float DotRow32(const std::byte* row, int64_t blocks, Row32 x) {
  __m256 chains = _mm256_setzero_ps();
  int64_t k = 0;
  for (; k + 8 <= blocks; k += 8) {
    PrefetchLines(row + kPrefetchAhead, 8 * Format::kBytes);
    chains = AddBlocks<Isa, Format>(row, x, chains);
    row += 8 * Format::kBytes;
    x = {x.q + 8 * 32, x.scale + 8, x.sums + 16};
  }
  if (k < blocks) chains = AddLastBlocks<Isa, Format>(row, static_cast<int>(blocks - k), x, chains);
  return Fold8(chains);
}

// Row by row, each against all activation rows while it is in the cache.
template <class Isa, class Format>
inline void MatmulRows32(const MatmulArgs& args) {
  const ActivationRows& x = args.x;
  const int64_t blocks = x.columns / 32;
  for (int64_t r = 0; r < args.rows; ++r) {
    const std::byte* row = args.weights + static_cast<size_t>(r) * args.row_bytes;
    for (int64_t b = 0; b < x.batch; ++b) {
      args.y[b * args.y_stride + r] = DotRow32<Isa, Format>(
          row, blocks, {x.q + b * x.columns, x.scale + b * blocks, x.sums + b * (x.columns / 16)});
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
