// Sixteen elements of a KV row as floats, exactly, for each KV type (kv_rows.h). Templates of internal
// linkage (isa_avx2.h).
#pragma once

#include "formats/blocks.h"
#include "kernels/kernels.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

// Load<Isa, kHalf>(row, scales, j): elements j … j + 15, j a multiple of 16 and in the half kHalf of its block of 32.
// scales: those of the row's blocks, as GatherScales left them.
struct ElementF32 {
  static constexpr int kBytes = 4;  // of an element; 0 for block types
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, const float*, int64_t j) {
    return Isa::LoadF32(row + 4 * j);
  }
};
struct ElementF16 {
  static constexpr int kBytes = 2;
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, const float*, int64_t j) {
    return Isa::LoadF16(row + 2 * j);
  }
};

template <class Block>
inline const Block* BlockAt(const std::byte* row, int64_t j) {
  return reinterpret_cast<const Block*>(row) + j / 32;
}
template <int kHalf>
inline __m128i HalfNibbles(const formats::Byte* qs) {
  const __m128i bytes = Load128(qs);
  return _mm_and_si128(kHalf == 0 ? bytes : _mm_srli_epi16(bytes, 4), _mm_set1_epi8(15));
}

struct ElementQ8_0 {
  using Block = formats::BlockQ8_0;
  static constexpr int kBytes = 0;
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, const float* scales, int64_t j) {
    const __m128i codes = Load128(BlockAt<Block>(row, j)->qs + 16 * kHalf);
    return Isa::Multiply(Isa::FromI8(codes), Isa::Set(scales[j / 32]));
  }
};
struct ElementQ5_0 {
  using Block = formats::BlockQ5_0;
  static constexpr int kBytes = 0;
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, const float* scales, int64_t j) {
    const Block* block = BlockAt<Block>(row, j);
    const uint32_t high = formats::Load16(block->qh + 2 * kHalf);
    const __m128i bit4 = _mm256_castsi256_si128(Isa::SpreadBits(high ^ 0xffffu, static_cast<int8_t>(0xf0)));
    // Bit 4 clear: n − 16 is n | 0xf0 as a signed byte. Set: n.
    const __m128i codes = _mm_or_si128(HalfNibbles<kHalf>(block->qs), bit4);
    return Isa::Multiply(Isa::FromI8(codes), Isa::Set(scales[j / 32]));
  }
};
struct ElementQ4_0 {
  using Block = formats::BlockQ4_0;
  static constexpr int kBytes = 0;
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, const float* scales, int64_t j) {
    return Isa::template LookUpNibbles<kHalf>(BlockAt<Block>(row, j)->qs, scales[j / 32]);
  }
};

// The scales of rows first … last − 1, `blocks` blocks each, to scales[row · blocks + block]. All at once: one by one,
// converting and broadcasting them took as long as the codes.
template <class Isa, class Element>
inline void GatherScales(const std::byte* rows, size_t row_bytes, int blocks, int first, int last, float* scales) {
  if constexpr (Element::kBytes == 0) {
    alignas(64) uint16_t halves[kTileSlots * kMaxHeadDim / 32 + 15];
    const size_t begin = static_cast<size_t>(first * blocks), end = static_cast<size_t>(last * blocks);
    size_t at = begin;
    for (int i = first; i < last; ++i) {
      const auto* block =
          reinterpret_cast<const typename Element::Block*>(rows + static_cast<size_t>(i) * row_bytes);
      for (int b = 0; b < blocks; ++b) halves[at++] = block[b].d.bits();
    }
    for (size_t i = begin / 16 * 16; i < begin; ++i) halves[i] = 0;
    while (at % 16 != 0) halves[at++] = 0;
    for (size_t i = begin / 16 * 16; i < end; i += 16) Isa::Store(scales + i, Isa::LoadF16(halves + i));
  }
}

// The last n < 16 elements of a row, from j on, filled up with zeros.
template <class Isa, class Element>
inline typename Isa::Lanes LoadLastElements(const std::byte* row, const float* scales, int64_t j, int64_t n) {
  if constexpr (Element::kBytes != 0) {
    alignas(64) std::byte copy[16 * Element::kBytes] = {};
    std::memcpy(copy, row + j * Element::kBytes, static_cast<size_t>(n) * Element::kBytes);
    return Element::template Load<Isa, 0>(copy, nullptr, 0);
  } else {  // the block goes on behind them, and its scale may be negative: +0 is wanted, not −0
    alignas(64) float x[16];
    Isa::Store(x, j % 32 == 0 ? Element::template Load<Isa, 0>(row, scales, j)
                              : Element::template Load<Isa, 1>(row, scales, j));
    for (int64_t i = n; i < 16; ++i) x[i] = 0.0f;
    return Isa::LoadF32(x);
  }
}

}  // namespace
}  // namespace sluice::kernels
