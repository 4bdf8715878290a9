// The super-block formats as the 256-bit kernels read them: 32 codes at a time, the group scales of a block,
// and the floats of eight rows. Templates of internal linkage (isa_avx2.h). Layouts: formats/blocks.h.
//
// A format has: kBytes of a block; kOffset, by which its unsigned codes are too large, or kSigned codes;
// kMaxCode, their largest magnitude; kHasMin; Codes<Isa, j>: the 32 codes of part j (0 … 7) in their order;
// and, where groups have 16 elements, RowScales, RowMinimums, Scale (d of one block), Minimum and Floats.
//
// A header is what single rows need of one block of each of eight rows: d, dmin, RowSum(block, r, x), the
// lanes of row r's integer sum, and MinSums(blocks, x), the eight sums of minimums.
#pragma once

#include "kernels/x86/blocks32.h"

namespace sluice::kernels {
namespace {

// One super-block of activations.
struct Superblock {
  const int8_t* q;
  const int16_t* sums;  // 16
};

// The blocks of eight rows that are worked on together.
struct RowBlocks {
  const std::byte* first;
  size_t step;
  inline const std::byte* row(int r) const { return first + static_cast<size_t>(r) * step; }
};

// `scales` are 16 signed bytes, or unsigned ones below 128 → int16, those of even groups in the low half.
inline __m256i EvenOddScales(__m128i scales) {
  const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  return _mm256_cvtepi8_epi16(_mm_shuffle_epi8(scales, order));
}

// 16 int16 by group → in the order of EvenOddScales.
inline __m256i EvenOddSums(const int16_t* sums) {
  const __m256i order =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
  return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(Load256(sums), order), 0xd8);
}

// The scales of part j (groups 2j and 2j + 1), repeated for each pair of codes.
template <int j>
inline __m256i SpreadScales(__m256i even_odd) {
  return _mm256_shuffle_epi8(even_odd, _mm256_set1_epi16(static_cast<int16_t>(2 * j | (2 * j + 1) << 8)));
}

inline __m256i GatherU32(const RowBlocks& blocks, int offset) {
  const auto at = [&](int r) { return static_cast<int>(LoadU32(blocks.row(r) + offset)); };
  return _mm256_setr_epi32(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
}

inline __m256 GatherHalves(const RowBlocks& blocks, int offset) {
  return LoadHalves(blocks.first + offset, blocks.step);
}

// The low 16 bits of each of 8 lanes as f16.
inline __m256 LowHalves(__m256i v) {
  const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}
inline __m256 HighHalves(__m256i v) { return LowHalves(_mm256_srli_epi32(v, 16)); }

// Shifts 16-bit words so that bit `from` of each byte comes to bit `to`; what else is moved, the caller masks
// away.
template <int from, int to>
inline __m256i MoveBits(__m256i v) {
  if constexpr (from > to) return _mm256_srli_epi16(v, from - to);
  if constexpr (from < to) return _mm256_slli_epi16(v, to - from);
  return v;
}

template <int j>
inline __m256i TwoBitPlane(const std::byte* planes) {
  return _mm256_and_si256(MoveBits<2 * (j % 4), 0>(Load256(planes + 32 * (j / 4))), _mm256_set1_epi8(3));
}

// Part j of nibbles that lie as in Q4_K: low nibbles of 32 bytes, then their high nibbles.
template <int j>
inline __m256i NibblePart(const std::byte* qs) {
  return _mm256_and_si256(MoveBits<4 * (j % 2), 0>(Load256(qs + 32 * (j / 2))), _mm256_set1_epi8(15));
}

struct SuperQ2_K {
  static constexpr int kBytes = 84;
  static constexpr int kOffset = 0;
  static constexpr int kFoldedOffset = 0;  // products are 0 … 45
  static constexpr int kMaxCode = 3;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = true;
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    return TwoBitPlane<j>(block + 16);
  }
  static inline __m256i RowScales(const std::byte* block) {
    return EvenOddScales(_mm_and_si128(Load128(block), _mm_set1_epi8(15)));
  }
  static inline __m256i RowMinimums(const std::byte* block) {
    return EvenOddScales(_mm_and_si128(_mm_srli_epi16(Load128(block), 4), _mm_set1_epi8(15)));
  }
  static inline float Scale(const std::byte* block) { return LoadHalf(block + 80); }
  static inline float Minimum(const std::byte* block) { return LoadHalf(block + 82); }
  static inline void Floats(const RowBlocks& blocks, __m256& d, __m256& dmin) {
    const __m256i both = GatherU32(blocks, 80);
    d = LowHalves(both);
    dmin = HighHalves(both);
  }
};

struct SuperQ3_K {
  static constexpr int kBytes = 110;
  static constexpr int kOffset = 4;
  static constexpr int kFoldedOffset = 124;  // products are −124 … 128
  static constexpr int kMaxCode = 7;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = false;
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    return Isa::OrMasked(TwoBitPlane<j>(block + 32), MoveBits<j, 2>(Load256(block)), _mm256_set1_epi8(4));
  }
  static inline __m256i RowScales(const std::byte* block) {
    // The 12 bytes of scales, read with the two before them to stay inside the block.
    const __m128i bytes = Load128(block + 94);
    const __m128i low_of = _mm_setr_epi8(2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9);
    const __m128i high_of = _mm_setr_epi8(10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13);
    const __m128i low = _mm_and_si128(_mm_srlv_epi64(_mm_shuffle_epi8(bytes, low_of), _mm_set_epi64x(4, 0)),
                                      _mm_set1_epi8(15));
    const __m128i high = _mm_and_si128(
        _mm_srlv_epi32(_mm_shuffle_epi8(bytes, high_of), _mm_setr_epi32(0, 2, 4, 6)), _mm_set1_epi8(3));
    const __m128i scales = _mm_or_si128(low, _mm_slli_epi16(high, 4));
    return EvenOddScales(_mm_sub_epi8(scales, _mm_set1_epi8(32)));
  }
  static inline float Scale(const std::byte* block) { return LoadHalf(block + 108); }
  static inline void Floats(const RowBlocks& blocks, __m256& d, __m256&) { d = GatherHalves(blocks, 108); }
};

struct SuperQ6_K {
  static constexpr int kBytes = 210;
  static constexpr int kOffset = 32;
  static constexpr int kMaxCode = 63;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = false;
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    constexpr int kHalf = j / 4;
    constexpr int kPart = j % 4;  // 0, 1: low nibbles of the two vectors of ql; 2, 3: high ones
    const __m256i ql = Load256(block + 64 * kHalf + 32 * (kPart % 2));
    const __m256i low = _mm256_and_si256(MoveBits<kPart / 2 * 4, 0>(ql), _mm256_set1_epi8(15));
    const __m256i qh = Load256(block + 128 + 32 * kHalf);
    return Isa::OrMasked(low, MoveBits<2 * kPart, 4>(qh), _mm256_set1_epi8(0x30));
  }
  static inline __m256i RowScales(const std::byte* block) { return EvenOddScales(Load128(block + 192)); }
  static inline float Scale(const std::byte* block) { return LoadHalf(block + 208); }
  static inline void Floats(const RowBlocks& blocks, __m256& d, __m256&) { d = GatherHalves(blocks, 208); }
};

// The 32 codes of part j as signed bytes, or as unsigned ones that are too large by kOffset.
template <class Isa, class Format, int j>
inline __m256i CodesOf(const std::byte* block) {
  if constexpr (requires { Format::template Magnitudes<j>(block); }) {
    return Isa::Negate(Format::template Magnitudes<j>(block), Format::template Signs<j>(block));
  } else {
    return Format::template Codes<Isa, j>(block);
  }
}

// Their products with q, summed over pairs.
template <class Isa, class Format, int j>
inline __m256i PairProducts(const std::byte* block, __m256i q) {
  if constexpr (requires { Format::template Magnitudes<j>(block); }) {
    return _mm256_maddubs_epi16(Format::template Magnitudes<j>(block),
                                Isa::Negate(q, Format::template Signs<j>(block)));
  } else {
    return _mm256_maddubs_epi16(Format::template Codes<Isa, j>(block), q);
  }
}

// What formats with groups of 16 read from a block of each of eight rows.
template <class Isa, class Format>
struct Header16 {
  __m256 d;
  __m256 dmin;

  explicit inline Header16(const RowBlocks& blocks) { Format::Floats(blocks, d, dmin); }

  // The lanes of each row's integer sum.
  inline __m256i RowSum(const std::byte* block, int, const Superblock& x) const {
    const __m256i scales = Format::RowScales(block);
    __m256i acc = _mm256_setzero_si256();
    if constexpr (Format::kOffset != 0) {
      // Codes are too large by kOffset. 32 · sums would overflow int16: half of it, twice.
      constexpr int kTimes = Format::kOffset > 16 ? 2 : 1;
      const __m256i excess =
          _mm256_mullo_epi16(EvenOddSums(x.sums), _mm256_set1_epi16(-Format::kOffset / kTimes));
      for (int i = 0; i < kTimes; ++i) acc = Isa::MulAddPairs(acc, scales, excess);
    }
    return AddParts<0>(block, scales, x, acc);
  }

  inline __m256i MinSums(const RowBlocks& blocks, const Superblock& x) const {
    const __m256i sums = EvenOddSums(x.sums);
    __m256i lanes[8];
    for (int r = 0; r < 8; ++r) lanes[r] = _mm256_madd_epi16(Format::RowMinimums(blocks.row(r)), sums);
    return SumEach(lanes);
  }

 private:
  template <int j>
  static inline __m256i AddParts(const std::byte* block, __m256i scales, const Superblock& x, __m256i acc) {
    if constexpr (j == 8) {
      return acc;
    } else {
      const __m256i p = PairProducts<Isa, Format, j>(block, Load256(x.q + 32 * j));
      return AddParts<j + 1>(block, scales, x, Isa::MulAddPairs(acc, p, SpreadScales<j>(scales)));
    }
  }
};

struct SuperQ4_K {
  static constexpr int kBytes = 144;
  static constexpr int kOffset = 0;
  static constexpr int kMaxCode = 15;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = true;
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    return NibblePart<j>(block + 16);
  }
};

struct SuperQ5_K {
  static constexpr int kBytes = 176;
  static constexpr int kOffset = 0;
  static constexpr int kMaxCode = 31;
  static constexpr bool kSigned = false;
  static constexpr bool kHasMin = true;
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    return Isa::OrMasked(NibblePart<j>(block + 48), MoveBits<j, 4>(Load256(block + 16)),
                         _mm256_set1_epi8(16));
  }
};

// Q4_K and Q5_K: the 16 bytes at the head of eight rows' blocks, transposed, so that each scale is decoded
// for eight rows at once and the minimums need no sum over lanes.
template <class Isa, class Format>
struct HeaderQ45 {
  __m256 d;
  __m256 dmin;
  alignas(32) uint32_t scale[8][8];  // [group of 32][row], the scale as two int16
  __m256i min_even[2];               // lane r: minimums 0 and 2 (4 and 6) of row r as int16
  __m256i min_odd[2];                // 1 and 3 (5 and 7)

  explicit inline HeaderQ45(const RowBlocks& blocks) {
    const auto load = [&](int r) {
      return _mm256_inserti128_si256(_mm256_castsi128_si256(Load128(blocks.row(r))),
                                     Load128(blocks.row(r + 4)), 1);
    };
    const __m256i a = load(0), b = load(1), c = load(2), e = load(3);
    const __m256i ab0 = _mm256_unpacklo_epi32(a, b), ab1 = _mm256_unpackhi_epi32(a, b);
    const __m256i ce0 = _mm256_unpacklo_epi32(c, e), ce1 = _mm256_unpackhi_epi32(c, e);
    const __m256i floats = _mm256_unpacklo_epi64(ab0, ce0);
    const __m256i w0 = _mm256_unpackhi_epi64(ab0, ce0);  // lane r: scales[0 … 3] of row r
    const __m256i w1 = _mm256_unpacklo_epi64(ab1, ce1);  // scales[4 … 7]
    const __m256i w2 = _mm256_unpackhi_epi64(ab1, ce1);  // scales[8 … 11]
    d = LowHalves(floats);
    dmin = HighHalves(floats);

    const __m256i six = _mm256_set1_epi8(63), four = _mm256_set1_epi8(15), top = _mm256_set1_epi8(0x30);
    SetScales<0>(_mm256_and_si256(w0, six));
    SetScales<4>(Isa::OrMasked(_mm256_and_si256(w2, four), _mm256_srli_epi32(w0, 2), top));
    const __m256i min_low = _mm256_and_si256(w1, six);
    const __m256i min_high =
        Isa::OrMasked(_mm256_and_si256(_mm256_srli_epi32(w2, 4), four), _mm256_srli_epi32(w1, 2), top);
    const __m256i even = _mm256_set1_epi16(0xff);
    min_even[0] = _mm256_and_si256(min_low, even);
    min_odd[0] = _mm256_srli_epi16(min_low, 8);
    min_even[1] = _mm256_and_si256(min_high, even);
    min_odd[1] = _mm256_srli_epi16(min_high, 8);
  }

  inline __m256i RowSum(const std::byte* block, int r, const Superblock& x) const {
    return AddParts<0>(block, r, x, _mm256_setzero_si256());
  }

  inline __m256i MinSums(const RowBlocks&, const Superblock& x) const {
    // Sums of 32, two of them in a lane to meet two minimums: (0, 2), (1, 3), (4, 6), (5, 7).
    const auto pair = [&](int g) {
      const int low = x.sums[2 * g] + x.sums[2 * g + 1];
      const int high = x.sums[2 * g + 4] + x.sums[2 * g + 5];
      return _mm256_set1_epi32((low & 0xffff) | static_cast<int>(static_cast<uint32_t>(high) << 16));
    };
    __m256i acc = _mm256_madd_epi16(min_even[0], pair(0));
    acc = Isa::MulAddPairs(acc, min_odd[0], pair(1));
    acc = Isa::MulAddPairs(acc, min_even[1], pair(4));
    return Isa::MulAddPairs(acc, min_odd[1], pair(5));
  }

 private:
  template <int g>
  inline void SetScales(__m256i bytes) {
    const auto set = [&](int i) {  // byte i of each lane, as two int16
      const __m256i spread =
          _mm256_set1_epi32(static_cast<int>(0x80008000u | static_cast<uint32_t>(i * 0x10001)));
      const __m256i lane =
          _mm256_setr_epi32(0, 0x00040004, 0x00080008, 0x000c000c, 0, 0x00040004, 0x00080008, 0x000c000c);
      Store256(scale[g + i], _mm256_shuffle_epi8(bytes, _mm256_or_si256(spread, lane)));
    };
    set(0);
    set(1);
    set(2);
    set(3);
  }

  template <int j>
  inline __m256i AddParts(const std::byte* block, int r, const Superblock& x, __m256i acc) const {
    if constexpr (j == 8) {
      return acc;
    } else {
      const __m256i p = _mm256_maddubs_epi16(Format::template Codes<Isa, j>(block), Load256(x.q + 32 * j));
      const __m256i scales = _mm256_set1_epi32(static_cast<int>(scale[j][r]));
      return AddParts<j + 1>(block, r, x, Isa::MulAddPairs(acc, p, scales));
    }
  }
};

struct SuperIQ4_XS {
  static constexpr int kBytes = 136;
  static constexpr int kOffset = 0;
  static constexpr int kMaxCode = 128;
  static constexpr bool kSigned = true;
  static constexpr bool kHasMin = false;
  template <class Isa, int j>
  static inline __m256i Codes(const std::byte* block) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(Iq4Values()), Nibbles(block + 8 + 16 * j));
  }
};

template <class Isa, class Format>
struct HeaderIQ4_XS {
  __m256 d;
  __m256 dmin;
  alignas(32) uint32_t scale[8][8];  // [group of 32][row], the scale as two int16

  explicit inline HeaderIQ4_XS(const RowBlocks& blocks) {
    const __m256i first = GatherU32(blocks, 0);
    d = LowHalves(first);
    SetScales<0>(_mm256_srli_epi32(first, 16), GatherU32(blocks, 4));
  }

  inline __m256i RowSum(const std::byte* block, int r, const Superblock& x) const {
    return AddParts<0>(block, r, x, _mm256_setzero_si256());
  }

 private:
  template <int g>
  inline void SetScales(__m256i high, __m256i low) {
    if constexpr (g < 8) {
      const __m256i low4 = _mm256_and_si256(_mm256_srli_epi32(low, 4 * g), _mm256_set1_epi32(15));
      const __m256i high2 = _mm256_and_si256(MoveBits32<2 * g, 4>(high), _mm256_set1_epi32(0x30));
      const __m256i s = _mm256_sub_epi32(_mm256_or_si256(low4, high2), _mm256_set1_epi32(32));
      Store256(scale[g], _mm256_blend_epi16(s, _mm256_slli_epi32(s, 16), 0xaa));
      SetScales<g + 1>(high, low);
    }
  }

  template <int from, int to>
  static inline __m256i MoveBits32(__m256i v) {
    if constexpr (from > to) return _mm256_srli_epi32(v, from - to);
    if constexpr (from < to) return _mm256_slli_epi32(v, to - from);
    return v;
  }

  template <int j>
  inline __m256i AddParts(const std::byte* block, int r, const Superblock& x, __m256i acc) const {
    if constexpr (j == 8) {
      return acc;
    } else {
      const __m256i w = Format::template Codes<Isa, j>(block);
      const __m256i q = Load256(x.q + 32 * j);
      const __m256i p = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(q, w));
      const __m256i scales = _mm256_set1_epi32(static_cast<int>(scale[j][r]));
      return AddParts<j + 1>(block, r, x, Isa::MulAddPairs(acc, p, scales));
    }
  }
};

}  // namespace
}  // namespace sluice::kernels
