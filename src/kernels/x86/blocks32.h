// Products with the 32-element formats: eight blocks of a row at a time, which are the eight chains of the
// canonical order, and four rows side by side. Templates of internal linkage (isa_avx2.h).
//
// A format has: kBytes of a block; Codes, those of two blocks as bytes, kMaxCode the largest magnitude;
// kSigned (codes are signed bytes) or kOffset (codes are unsigned and too large by that); Scale and Scales,
// the d of one and of eight blocks; kHasMin and then Minimum and Minimums.
#pragma once

#include "kernels/kernels.h"
#include "kernels/x86/streams.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

// Eight blocks are dotted as four pairs (i, i + 4), each in two registers: the first 16 codes of both and the
// last 16.
struct CodePair {
  __m256i first, last;
};

// 16 bytes of nibbles each at a and b, the first codes in the low ones.
inline CodePair NibblePair(const std::byte* a, const std::byte* b) {
  const __m256i bytes = LoadPair(a, b);
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(bytes, mask), _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask)};
}

// The fifth bits of a pair, put to its codes. a and b are where their 32 bits stand.
template <class Isa>
inline CodePair AddFifthBits(CodePair codes, const std::byte* a, const std::byte* b) {
  const uint32_t bits_a = LoadU32(a), bits_b = LoadU32(b);
  const uint32_t first = (bits_a & 0xffffu) | (bits_b << 16);
  const uint32_t last = (bits_a >> 16) | (bits_b & 0xffff0000u);
  return {_mm256_or_si256(codes.first, Isa::SpreadBits(first, 16)),
          _mm256_or_si256(codes.last, Isa::SpreadBits(last, 16))};
}

// 4-bit codes → bytes of a table of 16.
inline CodePair LookUp(__m128i table, CodePair codes) {
  const __m256i both = _mm256_broadcastsi128_si256(table);
  return {_mm256_shuffle_epi8(both, codes.first), _mm256_shuffle_epi8(both, codes.last)};
}

struct BlockQ4_0Format {
  static constexpr int kBytes = 18;
  static constexpr int kOffset = 8;
  static constexpr int kMaxCode = 15;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = false;
  template <class Isa>
  static inline CodePair Codes(const std::byte* a, const std::byte* b) {
    return NibblePair(a + 2, b + 2);
  }
  static inline float Scale(const std::byte* block) { return LoadHalf(block); }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
};

struct BlockQ4_1Format {
  static constexpr int kBytes = 20;
  static constexpr int kOffset = 0;
  static constexpr int kMaxCode = 15;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = true;
  template <class Isa>
  static inline CodePair Codes(const std::byte* a, const std::byte* b) {
    return NibblePair(a + 4, b + 4);
  }
  static inline float Scale(const std::byte* block) { return LoadHalf(block); }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
  static inline float Minimum(const std::byte* block) { return LoadHalf(block + 2); }
  static inline __m256 Minimums(const std::byte* blocks) { return LoadHalves(blocks + 2, kBytes); }
};

struct BlockQ5_0Format {
  static constexpr int kBytes = 22;
  static constexpr int kOffset = 16;
  static constexpr int kMaxCode = 31;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = false;
  template <class Isa>
  static inline CodePair Codes(const std::byte* a, const std::byte* b) {
    return AddFifthBits<Isa>(NibblePair(a + 6, b + 6), a + 2, b + 2);
  }
  static inline float Scale(const std::byte* block) { return LoadHalf(block); }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
};

struct BlockQ5_1Format {
  static constexpr int kBytes = 24;
  static constexpr int kOffset = 0;
  static constexpr int kMaxCode = 31;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = true;
  template <class Isa>
  static inline CodePair Codes(const std::byte* a, const std::byte* b) {
    return AddFifthBits<Isa>(NibblePair(a + 8, b + 8), a + 4, b + 4);
  }
  static inline float Scale(const std::byte* block) { return LoadHalf(block); }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
  static inline float Minimum(const std::byte* block) { return LoadHalf(block + 2); }
  static inline __m256 Minimums(const std::byte* blocks) { return LoadHalves(blocks + 2, kBytes); }
};

struct BlockQ8_0Format {
  static constexpr int kBytes = 34;
  static constexpr int kOffset = 0;
  static constexpr int kMaxCode = 128;
  static constexpr bool kSigned = true;
  static constexpr bool kHasMin = false;
  template <class Isa>
  static inline CodePair Codes(const std::byte* a, const std::byte* b) {
    return {LoadPair(a + 2, b + 2), LoadPair(a + 18, b + 18)};
  }
  static inline float Scale(const std::byte* block) { return LoadHalf(block); }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
};

// The code book of IQ4_NL and IQ4_XS.
inline __m128i Iq4Values() {
  return _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
}

struct BlockIQ4_NLFormat {
  static constexpr int kBytes = 18;
  static constexpr int kOffset = 0;
  static constexpr int kMaxCode = 128;
  static constexpr bool kSigned = true;
  static constexpr bool kHasMin = false;
  template <class Isa>
  static inline CodePair Codes(const std::byte* a, const std::byte* b) {
    return LookUp(Iq4Values(), NibblePair(a + 2, b + 2));
  }
  static inline float Scale(const std::byte* block) { return LoadHalf(block); }
  static inline __m256 Scales(const std::byte* blocks) { return LoadHalves(blocks, kBytes); }
};

// Twice the value of each 4-bit float, plus kFp4Offset.
constexpr int kFp4Offset = 12;
inline __m128i Fp4Values() {
  return _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
}

struct BlockMXFP4Format {
  static constexpr int kBytes = 17;
  static constexpr int kOffset = kFp4Offset;
  static constexpr int kMaxCode = 24;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = false;
  template <class Isa>
  static inline CodePair Codes(const std::byte* a, const std::byte* b) {
    return LookUp(Fp4Values(), NibblePair(a + 1, b + 1));
  }
  // 2^(e − 128). For e of 0 and 1 the float is subnormal.
  static inline float Scale(const std::byte* block) {
    const uint32_t e = static_cast<uint8_t>(block[0]);
    const uint32_t bits = e > 1 ? (e - 1) << 23 : 0x200000u << e;
    float scale;
    std::memcpy(&scale, &bits, sizeof(scale));
    return scale;
  }
  static inline __m256 Scales(const std::byte* blocks) {
    alignas(32) float scale[8];
    for (int i = 0; i < 8; ++i) scale[i] = Scale(blocks + i * kBytes);
    return _mm256_load_ps(scale);
  }
};

// One activation row in blocks of 32.
struct Row32 {
  const int8_t* q;
  const float* scale;
  const int16_t* sums;
};

// Eight blocks of activations as AddBlocks meets them.
struct Octet {
  CodePair q[4];
  __m256 scale;
  __m256i sums;

  explicit inline Octet(Row32 x) : scale(_mm256_loadu_ps(x.scale)), sums(Load256(x.sums)) {
    for (int i = 0; i < 4; ++i) {
      const int8_t* a = x.q + i * 32;
      const int8_t* b = a + 4 * 32;
      q[i] = {LoadPair(a, b), LoadPair(a + 16, b + 16)};
    }
  }
};

// Adds eight blocks to the eight chains.
template <class Isa, class Format>
inline __m256 AddBlocks(const std::byte* blocks, const Octet& x, __m256 chains) {
  __m256i lanes[4];
  for (int i = 0; i < 4; ++i) {
    const std::byte* block = blocks + i * Format::kBytes;
    const CodePair w = Format::template Codes<Isa>(block, block + 4 * Format::kBytes);
    lanes[i] = Format::kSigned ? Isa::DotSigned(w.first, x.q[i].first, w.last, x.q[i].last)
                               : Isa::DotUnsigned(w.first, x.q[i].first, w.last, x.q[i].last);
  }
  __m256i isum = SumEachHalf(lanes);
  constexpr int kExcess = Format::kSigned ? Isa::kSignedExcess : Format::kOffset;
  if constexpr (kExcess != 0) {
    isum = _mm256_sub_epi32(isum, _mm256_madd_epi16(x.sums, _mm256_set1_epi16(kExcess)));
  }
  chains = _mm256_fmadd_ps(_mm256_mul_ps(Format::Scales(blocks), x.scale), _mm256_cvtepi32_ps(isum), chains);
  if constexpr (Format::kHasMin) {
    const __m256i xsum = _mm256_madd_epi16(x.sums, _mm256_set1_epi16(1));
    chains =
        _mm256_fmadd_ps(_mm256_mul_ps(Format::Minimums(blocks), x.scale), _mm256_cvtepi32_ps(xsum), chains);
  }
  return chains;
}

constexpr int kRows32 = 4;  // worked on together

// The last 1 … 7 blocks of each row, filled up with zeros; the chains behind them are not touched.
template <class Isa, class Format>
inline void AddLastBlocks(const std::byte* first, size_t step, int n, Row32 x, __m256 chains[kRows32]) {
  alignas(32) int8_t q[8 * 32] = {};
  alignas(32) float scale[8] = {};
  alignas(32) int16_t sums[16] = {};
  const size_t count = static_cast<size_t>(n);
  std::memcpy(q, x.q, count * 32);
  std::memcpy(scale, x.scale, count * sizeof(float));
  std::memcpy(sums, x.sums, count * 2 * sizeof(int16_t));
  const Octet octet({q, scale, sums});
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256 touched = _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), index));
  for (int r = 0; r < kRows32; ++r) {
    alignas(32) std::byte blocks[8 * Format::kBytes] = {};
    std::memcpy(blocks, first + static_cast<size_t>(r) * step, count * Format::kBytes);
    chains[r] = _mm256_blendv_ps(chains[r], AddBlocks<Isa, Format>(blocks, octet, chains[r]), touched);
  }
}

// y[r] for the rows at first + r · step.
template <class Isa, class Format>
inline void DotRows32(const std::byte* first, size_t step, int64_t blocks, Row32 x, float y[kRows32]) {
  __m256 chains[kRows32];
  for (__m256& chain : chains) chain = _mm256_setzero_ps();
  int64_t k = 0;
  for (; k + 8 <= blocks; k += 8) {
    const Octet octet(x);
    for (int r = 0; r < kRows32; ++r) {
      const std::byte* row = first + static_cast<size_t>(r) * step;
      PrefetchLines(row + kPrefetchAhead, 8 * Format::kBytes);
      chains[r] = AddBlocks<Isa, Format>(row, octet, chains[r]);
    }
    first += 8 * Format::kBytes;
    x = {x.q + 8 * 32, x.scale + 8, x.sums + 16};
  }
  if (k < blocks) AddLastBlocks<Isa, Format>(first, step, static_cast<int>(blocks - k), x, chains);
  for (int r = 0; r < kRows32; ++r) y[r] = Fold8(chains[r]);
}

template <class Isa, class Format>
inline void MatmulRows32(const MatmulArgs& args) {
  const ActivationRows& x = args.x;
  const int64_t blocks = x.columns / 32;
  ForEachPanel<kRows32>(args, [&](const std::byte* first, size_t step, int64_t b, float* y) {
    const Row32 row = {x.q + b * x.columns, x.scale + b * blocks, x.sums + b * (x.columns / 16)};
    DotRows32<Isa, Format>(first, step, blocks, row, y);
  });
}

}  // namespace
}  // namespace sluice::kernels
