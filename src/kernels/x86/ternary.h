// The ternary formats as the 256-bit kernels read them: codes 0, 1, 2, which are too large by 1, and no inner
// scales. Super-block formats in the sense of superblocks.h. Templates of internal linkage (isa_avx2.h).
// Layouts: formats/blocks.h.
#pragma once

#include "kernels/x86/superblocks.h"

namespace sluice::kernels {
namespace {

struct Ternary {
  static constexpr int kOffset = 1;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = false;
  static inline __m256i RowScales(const std::byte*) { return _mm256_set1_epi16(1); }
};

struct SuperTQ2_0 : Ternary {
  static constexpr int kBytes = 66;
  static constexpr int kMaxCode = 3;
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    return TwoBitPlane<j>(block);
  }
  static inline float Scale(const std::byte* block) { return LoadHalf(block + 64); }
  static inline void Floats(const RowBlocks& blocks, __m256& d, __m256&) { d = GatherHalves(blocks, 64); }
};

struct SuperTQ1_0 : Ternary {
  static constexpr int kBytes = 54;
  static constexpr int kMaxCode = 2;
  // Five digits of each of 32 bytes, then five of each of 16, then four of each of 4.
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    if constexpr (j < 5) {
      return Digits(Shifted<j>(Load256(block)));
    } else {
      const __m256i sixteen = _mm256_broadcastsi128_si256(Load128(block + 32));
      if constexpr (j < 7) {
        constexpr int kFirst = 2 * (j - 5);
        return Digits(_mm256_blend_epi32(Shifted<kFirst>(sixteen), Shifted<kFirst + 1>(sixteen), 0xf0));
      } else {
        const __m256i four = _mm256_set1_epi32(static_cast<int>(LoadU32(block + 48)));
        const __m256i first = _mm256_blend_epi32(four, Shifted<1>(four), 0x20);
        const __m256i last = _mm256_blend_epi32(Shifted<2>(four), Shifted<3>(four), 0x80);
        return Digits(_mm256_blend_epi32(Shifted<4>(sixteen), _mm256_blend_epi32(first, last, 0xc0), 0xf0));
      }
    }
  }
  static inline float Scale(const std::byte* block) { return LoadHalf(block + 52); }
  static inline void Floats(const RowBlocks& blocks, __m256& d, __m256&) { d = GatherHalves(blocks, 52); }

 private:
  // Bytes are fractions of 256 in base 3: times 3^n, what is whole drops out at the top.
  template <int n>
  static inline __m256i Shifted(__m256i v) {
    if constexpr (n == 0) {
      return v;
    } else {
      const __m256i before = Shifted<n - 1>(v);
      return _mm256_add_epi8(before, _mm256_add_epi8(before, before));
    }
  }
  // The first digit of a fraction f, floor(3 · f / 256): 1 from 86 on, 2 from 171 on.
  static inline __m256i Digits(__m256i f) {
    const auto from = [f](int least) {
      return _mm256_cmpeq_epi8(_mm256_max_epu8(f, _mm256_set1_epi8(static_cast<char>(least))), f);
    };
    return _mm256_sub_epi8(_mm256_setzero_si256(), _mm256_add_epi8(from(86), from(171)));
  }
};

}  // namespace
}  // namespace sluice::kernels
