// Products with NVFP4: blocks of four groups of 16, each of which is a float step with a scale of its own.
// The eight groups of two blocks are the eight chains of the canonical order; four rows side by side.
// Templates of internal linkage (isa_avx2.h). Layout: formats/blocks.h.
#pragma once

#include "kernels/kernels.h"
#include "kernels/x86/blocks32.h"
#include "kernels/x86/streams.h"
#include "kernels/x86/vectors.h"

namespace sluice::kernels {
namespace {

constexpr int kNvfp4Bytes = 36;
constexpr int kNvfp4Length = 64;

// Two blocks of activations as AddTwoBlocks meets them.
struct EightGroups {
  __m256i q[4];    // groups i and i + 4
  __m256 scale;    // one for each group
  __m256i excess;  // what the unsigned codes add to each sum

  explicit inline EightGroups(Row32 x)
      : scale(_mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(x.scale)),
                                       _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3))),
        excess(_mm256_mullo_epi32(_mm256_cvtepi16_epi32(Load128(x.sums)), _mm256_set1_epi32(kFp4Offset))) {
    for (int i = 0; i < 4; ++i) q[i] = LoadPair(x.q + 16 * i, x.q + kNvfp4Length + 16 * i);
  }
};

// Half the UE4M3 scales of two blocks. Exponent and mantissa of 7 bits, moved to where a float has its own,
// are the scale times 2^(7 − 127), subnormals included. 0x7f is 0; the sign doesn't count.
inline __m256 GroupScales(const std::byte* blocks) {
  const __m128i bytes =
      _mm_unpacklo_epi32(_mm_cvtsi32_si128(static_cast<int>(LoadU32(blocks))),
                         _mm_cvtsi32_si128(static_cast<int>(LoadU32(blocks + kNvfp4Bytes))));
  const __m256i wide = _mm256_cvtepu8_epi32(bytes);
  const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi32(0x7f));
  const __m256i bits = _mm256_andnot_si256(_mm256_cmpeq_epi32(wide, _mm256_set1_epi32(0x7f)),
                                           _mm256_slli_epi32(magnitude, 20));
  return _mm256_mul_ps(_mm256_castsi256_ps(bits), _mm256_set1_ps(0x1p119f));
}

// The same for one group.
inline float GroupScale(std::byte scale) {
  const uint32_t byte = static_cast<uint8_t>(scale);
  const uint32_t bits = byte == 0x7f ? 0 : (byte & 0x7f) << 20;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value * 0x1p119f;
}

// Adds the eight groups of two blocks to the eight chains.
template <class Isa>
inline __m256 AddTwoBlocks(const std::byte* blocks, const EightGroups& x, __m256 chains) {
  const __m256i values = _mm256_broadcastsi128_si256(Fp4Values());
  __m256i lanes[4];
  for (int i = 0; i < 4; ++i) {
    const std::byte* a = blocks + 4 + 8 * i;
    const __m256i bytes = _mm256_set_m128i(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a + kNvfp4Bytes)),
                                           _mm_loadl_epi64(reinterpret_cast<const __m128i*>(a)));
    // Of each group the low nibbles, then the high ones.
    const __m256i nibbles =
        _mm256_and_si256(_mm256_unpacklo_epi64(bytes, _mm256_srli_epi16(bytes, 4)), _mm256_set1_epi8(15));
    lanes[i] = Isa::DotUnsigned(_mm256_shuffle_epi8(values, nibbles), x.q[i]);
  }
  const __m256i isum = _mm256_sub_epi32(SumEachHalf(lanes), x.excess);
  return _mm256_fmadd_ps(_mm256_mul_ps(GroupScales(blocks), x.scale), _mm256_cvtepi32_ps(isum), chains);
}

// The last block of an odd number, beside one of zeros; the chains behind it are not touched.
template <class Isa>
inline __m256 AddLastBlock(const std::byte* block, Row32 x, __m256 chains) {
  alignas(32) int8_t q[2 * kNvfp4Length] = {};
  alignas(16) float scale[4] = {};
  alignas(16) int16_t sums[8] = {};
  std::memcpy(q, x.q, kNvfp4Length);
  std::memcpy(scale, x.scale, 2 * sizeof(float));
  std::memcpy(sums, x.sums, 4 * sizeof(int16_t));
  std::byte blocks[2 * kNvfp4Bytes] = {};
  std::memcpy(blocks, block, kNvfp4Bytes);
  return _mm256_blend_ps(chains, AddTwoBlocks<Isa>(blocks, EightGroups({q, scale, sums}), chains), 0x0f);
}

template <class Isa>
inline void MatmulNvfp4(const MatmulArgs& args) {
  const ActivationRows& x = args.x;
  const int64_t blocks = x.columns / kNvfp4Length;
  ForEachPanel<kRows32>(args, [&](const std::byte* first, size_t step, int64_t b, float* y) {
    Row32 row = {x.q + b * x.columns, x.scale + b * (x.columns / 32), x.sums + b * (x.columns / 16)};
    __m256 chains[kRows32];
    for (__m256& chain : chains) chain = _mm256_setzero_ps();
    for (int64_t k = 0; k + 2 <= blocks; k += 2) {
      const EightGroups groups(row);
      for (int r = 0; r < kRows32; ++r) {
        const std::byte* at = first + static_cast<size_t>(r) * step;
        PrefetchLines(at + kPrefetchAhead, 2 * kNvfp4Bytes);
        chains[r] = AddTwoBlocks<Isa>(at, groups, chains[r]);
      }
      first += 2 * kNvfp4Bytes;
      row = {row.q + 2 * kNvfp4Length, row.scale + 4, row.sums + 8};
    }
    for (int r = 0; r < kRows32; ++r) {
      if (blocks % 2 != 0)
        chains[r] = AddLastBlock<Isa>(first + static_cast<size_t>(r) * step, row, chains[r]);
      y[r] = Fold8(chains[r]);
    }
  });
}

}  // namespace
}  // namespace sluice::kernels
