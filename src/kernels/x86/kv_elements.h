// Sixteen elements of a KV row as floats, exactly, for each KV type (kv_rows.h). Templates of internal
// linkage (isa_avx2.h).
#pragma once

#include "formats/blocks.h"
#include "kernels/kernels.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

// Load<Isa, kHalf>(row, scales, j): elements j … j + 15, j a multiple of 16 and in the half kHalf of its
// block of 32. scales: those of the row's blocks, kTileSlots apart, as GatherScales left them. RowBytes(n):
// of a row of n elements.
struct ElementF32 {
  static constexpr int kBytes = 4;  // of an element; 0 for block types
  static constexpr size_t RowBytes(int n) { return static_cast<size_t>(4 * n); }
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, const float*, int64_t j) {
    return Isa::LoadF32(row + 4 * j);
  }
};
struct ElementF16 {
  static constexpr int kBytes = 2;
  static constexpr size_t RowBytes(int n) { return static_cast<size_t>(2 * n); }
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
  static constexpr size_t RowBytes(int n) { return static_cast<size_t>((n + 31) / 32) * sizeof(Block); }
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, const float* scales, int64_t j) {
    const __m128i codes = Load128(BlockAt<Block>(row, j)->qs + 16 * kHalf);
    return Isa::Multiply(Isa::FromI8(codes), Isa::Set(scales[j / 32 * kTileSlots]));
  }
};
struct ElementQ5_0 {
  using Block = formats::BlockQ5_0;
  static constexpr int kBytes = 0;
  static constexpr size_t RowBytes(int n) { return static_cast<size_t>((n + 31) / 32) * sizeof(Block); }
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, const float* scales, int64_t j) {
    const Block* block = BlockAt<Block>(row, j);
    const uint32_t high = formats::Load16(block->qh + 2 * kHalf);
    const __m128i bit4 = _mm256_castsi256_si128(Isa::SpreadBits(high ^ 0xffffu, static_cast<int8_t>(0xf0)));
    // Bit 4 clear: n − 16 is n | 0xf0 as a signed byte. Set: n.
    const __m128i codes = _mm_or_si128(HalfNibbles<kHalf>(block->qs), bit4);
    return Isa::Multiply(Isa::FromI8(codes), Isa::Set(scales[j / 32 * kTileSlots]));
  }
};
struct ElementQ4_0 {
  using Block = formats::BlockQ4_0;
  static constexpr int kBytes = 0;
  static constexpr size_t RowBytes(int n) { return static_cast<size_t>((n + 31) / 32) * sizeof(Block); }
  template <class Isa, int kHalf>
  static inline typename Isa::Lanes Load(const std::byte* row, const float* scales, int64_t j) {
    return Isa::template LookUpNibbles<kHalf>(BlockAt<Block>(row, j)->qs, scales[j / 32 * kTileSlots]);
  }
};

// The scales of rows first … last − 1, `blocks` blocks each, to scales[block][row]. All at once, sixteen to
// a register: a conversion and a broadcast for each block would come on top of what its codes take.
template <class Isa, class Element>
inline void GatherScales(const std::byte* rows, size_t row_bytes, int blocks, int first, int last,
                         float (*scales)[kTileSlots]) {
  if constexpr (Element::kBytes == 0) {
    alignas(64) uint16_t halves[kMaxHeadDim / 32][kTileSlots];
    const int begin = first / 16 * 16, end = (last + 15) / 16 * 16;
    for (int b = 0; b < blocks; ++b) {
      const std::byte* row = rows + static_cast<size_t>(first) * row_bytes;
      for (int i = begin; i < first; ++i) halves[b][i] = 0;
      for (int i = first; i < last; ++i, row += row_bytes)
        halves[b][i] = reinterpret_cast<const typename Element::Block*>(row)[b].d.bits();
      for (int i = last; i < end; ++i) halves[b][i] = 0;
    }
    for (int b = 0; b < blocks; ++b) {
      for (int i = begin; i < end; i += 16) Isa::Store(scales[b] + i, Isa::LoadF16(halves[b] + i));
    }
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
