// Sixteen elements of a KV row as floats, exactly, for each KV type (kv_rows.h). Templates of internal
// linkage (isa_avx2.h).
#pragma once

#include "formats/blocks.h"
#include "kernels/kernels.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

// Load<Isa, kHalf>(row, j): elements j … j + 15, j a multiple of 16 and in the half kHalf of its block of 32.
struct ElementF32 {
  static constexpr int kBytes = 4;  // of an element; 0 for block types
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, int64_t j) {
    return Isa::LoadF32(row + 4 * j);
  }
};
struct ElementF16 {
  static constexpr int kBytes = 2;
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, int64_t j) {
    return Isa::LoadF16(row + 2 * j);
  }
};

template <class Block>
inline const Block* BlockAt(const std::byte* row, int64_t j) {
  return reinterpret_cast<const Block*>(row) + j / 32;
}
inline float ScaleOf(formats::Half d) { return _cvtsh_ss(d.bits()); }
template <int kHalf>
inline __m128i HalfNibbles(const formats::Byte* qs) {
  const __m128i bytes = Load128(qs);
  return _mm_and_si128(kHalf == 0 ? bytes : _mm_srli_epi16(bytes, 4), _mm_set1_epi8(15));
}

struct ElementQ8_0 {
  static constexpr int kBytes = 0;
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, int64_t j) {
    const auto* block = BlockAt<formats::BlockQ8_0>(row, j);
    return Isa::Multiply(Isa::FromI8(Load128(block->qs + 16 * kHalf)), Isa::Set(ScaleOf(block->d)));
  }
};
struct ElementQ5_0 {
  static constexpr int kBytes = 0;
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, int64_t j) {
    const auto* block = BlockAt<formats::BlockQ5_0>(row, j);
    const uint32_t high = formats::Load16(block->qh + 2 * kHalf);
    const __m128i bit4 = _mm256_castsi256_si128(Isa::SpreadBits(high ^ 0xffffu, static_cast<int8_t>(0xf0)));
    // Bit 4 clear: n − 16 is n | 0xf0 as a signed byte. Set: n.
    const __m128i codes = _mm_or_si128(HalfNibbles<kHalf>(block->qs), bit4);
    return Isa::Multiply(Isa::FromI8(codes), Isa::Set(ScaleOf(block->d)));
  }
};
struct ElementQ4_0 {
  static constexpr int kBytes = 0;
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, int64_t j) {
    const auto* block = BlockAt<formats::BlockQ4_0>(row, j);
    const __m128i codes = _mm_sub_epi8(HalfNibbles<kHalf>(block->qs), _mm_set1_epi8(8));
    return Isa::Multiply(Isa::FromI8(codes), Isa::Set(ScaleOf(block->d)));
  }
};

// The last n < 16 elements of a row, from j on, filled up with zeros.
template <class Isa, class Element>
inline typename Isa::Lanes LoadLastElements(const std::byte* row, int64_t j, int64_t n) {
  if constexpr (Element::kBytes != 0) {
    alignas(64) std::byte copy[16 * Element::kBytes] = {};
    std::memcpy(copy, row + j * Element::kBytes, static_cast<size_t>(n) * Element::kBytes);
    return Element::template Load<Isa, 0>(copy, 0);
  } else {  // the block goes on behind them, and its scale may be negative: +0 is wanted, not −0
    alignas(64) float x[16];
    Isa::Store(x,
               j % 32 == 0 ? Element::template Load<Isa, 0>(row, j) : Element::template Load<Isa, 1>(row, j));
    for (int64_t i = n; i < 16; ++i) x[i] = 0.0f;
    return Isa::LoadF32(x);
  }
}

}  // namespace
}  // namespace sluice::kernels
