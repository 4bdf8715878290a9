// The code-book formats IQ1 to IQ3 as the 256-bit kernels read them: whole vectors of 8 or 4 codes by their
// index in a grid. Super-block formats in the sense of superblocks.h, with groups of 16. Templates of
// internal linkage (isa_avx2.h). Layouts: formats/blocks.h.
//
// Formats with signs have, instead of Codes, Magnitudes<j> (the 32 of part j) and Signs<j> (bit i: code i is
// negative): negating activations costs less than making signed codes and taking their magnitudes again.
#pragma once

#include "formats/codebooks.h"
#include "kernels/grid_bits.h"
#include "kernels/x86/superblocks.h"

namespace sluice::kernels {
namespace {

inline uint32_t ByteAt(const std::byte* p) { return static_cast<uint8_t>(*p); }

inline uint64_t LoadU64(const std::byte* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

inline __m256i Vectors(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  return _mm256_setr_epi64x(static_cast<int64_t>(a), static_cast<int64_t>(b), static_cast<int64_t>(c),
                            static_cast<int64_t>(d));
}

// The vectors of four elements with the indices at(0) … at(7).
template <size_t kEntries, typename At>
inline __m256i VectorsOf4(const std::array<uint32_t, kEntries>& grid, At at) {
  const auto entry = [&](int k) { return static_cast<int>(grid[at(k)]); };
  return _mm256_setr_epi32(entry(0), entry(1), entry(2), entry(3), entry(4), entry(5), entry(6), entry(7));
}

// 2s + 1 for 8 or 16 scales of 16 bits.
inline __m256i OddScales(__m256i s) { return _mm256_add_epi16(_mm256_add_epi16(s, s), _mm256_set1_epi16(1)); }

// The scales of groups of 32, eight of 32 bits → 2s + 1 for groups of 16, in the order of EvenOddScales.
inline __m256i OddScalesOf32(__m256i s) {
  return OddScales(_mm256_permute4x64_epi64(_mm256_packus_epi32(s, s), 0x88));
}

// Eight bytes of nibbles, one for each group of 16 → 2s + 1.
inline __m256i OddNibbleScales(const std::byte* scales) {
  const __m128i bytes = _mm_cvtsi64_si128(static_cast<int64_t>(LoadU64(scales)));
  const __m128i both = _mm_unpacklo_epi64(bytes, _mm_srli_epi16(bytes, 4));
  return OddScales(_mm256_cvtepi8_epi16(_mm_and_si128(both, _mm_set1_epi8(15))));
}

// d is an f16 at the head of the block, divided by kParts, a power of two.
template <int kParts>
struct HalfAtHead {
  static constexpr float kUnit = 1.0f / kParts;
  static inline float Scale(const std::byte* block) { return kUnit * LoadHalf(block); }
  static inline void Floats(const RowBlocks& blocks, __m256& d, __m256&) {
    d = _mm256_mul_ps(GatherHalves(blocks, 0), _mm256_set1_ps(kUnit));
  }
};

struct SignedGrid {
  static constexpr int kOffset = 0;
  static constexpr bool kSigned = true;
  static constexpr bool kHasMin = false;
};

struct SuperIQ2_XXS : SignedGrid, HalfAtHead<8> {
  static constexpr int kBytes = 66;
  static constexpr int kMaxCode = 43;
  template <int j>
  static inline __m256i Magnitudes(const std::byte* block) {
    const uint32_t at = LoadU32(block + 2 + 8 * j);
    const auto& grid = formats::kGridIQ2_XXS;
    return Vectors(grid[at & 255], grid[at >> 8 & 255], grid[at >> 16 & 255], grid[at >> 24]);
  }
  template <int j>
  static inline uint32_t Signs(const std::byte* block) {
    return SpreadSigns(LoadU32(block + 6 + 8 * j));
  }
  static inline __m256i RowScales(const std::byte* block) {
    // The upper halves of eight times 64 bits.
    const __m256 a = _mm256_castsi256_ps(Load256(block + 2)), b = _mm256_castsi256_ps(Load256(block + 34));
    const __m256i upper = _mm256_permute4x64_epi64(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd)), 0xd8);
    return OddScalesOf32(_mm256_srli_epi32(upper, 28));
  }
};

struct SuperIQ2_XS : SignedGrid, HalfAtHead<8> {
  static constexpr int kBytes = 74;
  static constexpr int kMaxCode = 43;
  template <int j>
  static inline __m256i Magnitudes(const std::byte* block) {
    const uint64_t at = LoadU64(block + 2 + 8 * j);
    const auto& grid = formats::kGridIQ2_XS;
    return Vectors(grid[at & 511], grid[at >> 16 & 511], grid[at >> 32 & 511], grid[at >> 48 & 511]);
  }
  template <int j>
  static inline uint32_t Signs(const std::byte* block) {
    return SignsOfWords(LoadU64(block + 2 + 8 * j));
  }
  static inline __m256i RowScales(const std::byte* block) { return OddNibbleScales(block + 66); }
};

struct SuperIQ2_S : SignedGrid, HalfAtHead<8> {
  static constexpr int kBytes = 82;
  static constexpr int kMaxCode = 43;
  template <int j>
  static inline __m256i Magnitudes(const std::byte* block) {
    const uint32_t low = LoadU32(block + 2 + 4 * j), high = ByteAt(block + 66 + j);
    const auto& grid = formats::kGridIQ2_S;
    return Vectors(grid[(low & 255) | (high << 8 & 0x300)], grid[(low >> 8 & 255) | (high << 6 & 0x300)],
                   grid[(low >> 16 & 255) | (high << 4 & 0x300)], grid[low >> 24 | (high << 2 & 0x300)]);
  }
  template <int j>
  static inline uint32_t Signs(const std::byte* block) {
    return LoadU32(block + 34 + 4 * j);
  }
  static inline __m256i RowScales(const std::byte* block) { return OddNibbleScales(block + 74); }
};

struct SuperIQ3_XXS : SignedGrid, HalfAtHead<4> {
  static constexpr int kBytes = 98;
  static constexpr int kMaxCode = 62;
  template <int j>
  static inline __m256i Magnitudes(const std::byte* block) {
    const uint64_t at = LoadU64(block + 2 + 8 * j);
    return VectorsOf4(formats::kGridIQ3_XXS, [at](int k) { return at >> (8 * k) & 255; });
  }
  template <int j>
  static inline uint32_t Signs(const std::byte* block) {
    return SpreadSigns(LoadU32(block + 66 + 4 * j));
  }
  static inline __m256i RowScales(const std::byte* block) {
    return OddScalesOf32(_mm256_srli_epi32(Load256(block + 66), 28));
  }
};

struct SuperIQ3_S : SignedGrid, HalfAtHead<1> {
  static constexpr int kBytes = 110;
  static constexpr int kMaxCode = 15;
  template <int j>
  static inline __m256i Magnitudes(const std::byte* block) {
    const uint64_t low = LoadU64(block + 2 + 8 * j);
    const uint32_t high = ByteAt(block + 66 + j);
    return VectorsOf4(formats::kGridIQ3_S,
                      [=](int k) { return (low >> (8 * k) & 255) | (high >> k & 1) << 8; });
  }
  template <int j>
  static inline uint32_t Signs(const std::byte* block) {
    return LoadU32(block + 74 + 4 * j);
  }
  static inline __m256i RowScales(const std::byte* block) {
    const __m256i nibbles = _mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int>(LoadU32(block + 106))),
                                              _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    return OddScalesOf32(_mm256_and_si256(nibbles, _mm256_set1_epi32(15)));
  }
};

// IQ1: 8 · (−1, 0, 1) ± 1, raised by 9. Elements of the vectors are −1, 0, 1; two more where `plus` has a
// bit.
template <class Isa>
inline __m256i Iq1Codes(__m256i vectors, uint32_t plus) {
  const __m256i eighths = _mm256_slli_epi16(_mm256_add_epi8(vectors, _mm256_set1_epi8(1)), 3);
  return _mm256_or_si256(eighths, Isa::SpreadBits(plus, 2));
}

struct RaisedGrid {
  static constexpr int kOffset = 9;
  static constexpr int kMaxCode = 18;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = false;
};

struct SuperIQ1_S : RaisedGrid, HalfAtHead<8> {
  static constexpr int kBytes = 50;
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    const uint32_t low = LoadU32(block + 2 + 4 * j), high = LoadU16(block + 34 + 2 * j);
    const auto& grid = formats::kGridIQ1;
    const __m256i vectors =
        Vectors(grid[(low & 255) | (high << 8 & 0x700)], grid[(low >> 8 & 255) | (high << 5 & 0x700)],
                grid[(low >> 16 & 255) | (high << 2 & 0x700)], grid[low >> 24 | (high >> 1 & 0x700)]);
    return Iq1Codes<Isa>(vectors, (high & 0x8000) != 0 ? 0 : 0xffffffffu);
  }
  static inline __m256i RowScales(const std::byte* block) {
    const __m128i s = _mm_and_si128(_mm_srli_epi16(Load128(block + 34), 12), _mm_set1_epi16(7));
    return OddScales(_mm256_broadcastsi128_si256(s));
  }
};

struct SuperIQ1_M : RaisedGrid {
  static constexpr int kBytes = 56;
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    const uint32_t low = LoadU32(block + 4 * j), high = LoadU16(block + 32 + 2 * j);
    const auto& grid = formats::kGridIQ1;
    const __m256i vectors =
        Vectors(grid[(low & 255) | (high << 8 & 0x700)], grid[(low >> 8 & 255) | (high << 4 & 0x700)],
                grid[(low >> 16 & 255) | (high & 0x700)], grid[low >> 24 | (high >> 4 & 0x700)]);
    // Bit 3 of each nibble means minus for the eight elements of its vector.
    const uint32_t minus =
        (high >> 3 & 1) | (high << 1 & 0x100) | (high << 5 & 0x10000) | (high << 9 & 0x1000000);
    return Iq1Codes<Isa>(vectors, ~(minus * 255));
  }
  static inline __m256i RowScales(const std::byte* block) {
    const __m128i words = _mm_cvtsi64_si128(static_cast<int64_t>(LoadU64(block + 48)));
    // Word g / 4 for group g, those of even groups first; its bits 3·(g % 4) … shifted to the top, and down
    // again.
    const __m128i order = _mm_setr_epi8(0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7);
    const __m256i spread = _mm256_broadcastsi128_si256(_mm_shuffle_epi8(words, order));
    const __m256i to_top =
        _mm256_setr_epi16(1 << 13, 1 << 7, 1 << 13, 1 << 7, 1 << 13, 1 << 7, 1 << 13, 1 << 7,  //
                          1 << 10, 1 << 4, 1 << 10, 1 << 4, 1 << 10, 1 << 4, 1 << 10, 1 << 4);
    return OddScales(_mm256_srli_epi16(_mm256_mullo_epi16(spread, to_top), 13));
  }
  static inline uint16_t HalfBits(const std::byte* block) { return HalfOfTopNibbles(LoadU64(block + 48)); }
  static inline float Scale(const std::byte* block) { return 0.125f * _cvtsh_ss(HalfBits(block)); }
  static inline void Floats(const RowBlocks& blocks, __m256& d, __m256&) {
    const auto half = [&](int r) { return static_cast<int16_t>(HalfBits(blocks.row(r))); };
    const __m128i halves =
        _mm_setr_epi16(half(0), half(1), half(2), half(3), half(4), half(5), half(6), half(7));
    d = _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(0.125f));
  }
};

}  // namespace
}  // namespace sluice::kernels
