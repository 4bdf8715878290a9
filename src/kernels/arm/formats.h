// The weight formats in NEON registers: one struct for each, the vector twin of formats/unpack.h. Those of few bits are
// in few_bits.h.
//
// A struct opens one block and hands out its parts:
//   kLength         elements of a block
//   kGroup          of a stretch that shares an integer scale; kLength where there is none
//   kChains         accumulators of a row (docs/arithmetic.md, section 4)
//   kMinimum        whether there is a second fma
//   Codes(visit)    calls visit(g, a, b) for each 32 elements: 16 codes from element 32g on, and the next 16
//   Scales()        of the groups, in the low kLength / kGroup lanes; Mins() likewise
//   d(), dmin()     the floats
// Private to this folder. All in an anonymous namespace: each instruction set compiles its own copy.
#pragma once

#include <arm_neon.h>

#include <bit>
#include <cstring>

#include "formats/blocks.h"
#include "formats/codebooks.h"
#include "formats/dtype.h"

namespace sluice::kernels::arm {
namespace {

using formats::DType;

inline float HalfToFloat(uint16_t bits) { return static_cast<float>(std::bit_cast<__fp16>(bits)); }
inline float ToFloat(formats::Half half) { return HalfToFloat(half.bits()); }

inline int8x16_t Signed(uint8x16_t v) { return vreinterpretq_s8_u8(v); }
inline uint8x16_t LowNibbles(uint8x16_t v) { return vandq_u8(v, vdupq_n_u8(15)); }
inline uint8x16_t HighNibbles(uint8x16_t v) { return vshrq_n_u8(v, 4); }
// (v >> shift) & 3 in each byte.
inline uint8x16_t TwoBits(uint8x16_t v, int shift) {
  return vandq_u8(vshlq_u8(v, vdupq_n_s8(static_cast<int8_t>(-shift))), vdupq_n_u8(3));
}
// `value` where the bit is set, 0 elsewhere.
inline uint8x16_t WhereBit(uint8x16_t v, int bit, uint8_t value) {
  return vandq_u8(vtstq_u8(v, vdupq_n_u8(static_cast<uint8_t>(1 << bit))), vdupq_n_u8(value));
}
// Byte j: all ones where bit j of `bits` is set, else 0.
inline uint8x16_t SpreadBits(uint32_t bits) {
  const uint8x16_t spread =
      vcombine_u8(vdup_n_u8(static_cast<uint8_t>(bits)), vdup_n_u8(static_cast<uint8_t>(bits >> 8)));
  return vtstq_u8(spread, vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u)));
}
// Byte j: 16 where bit j of `bits` is set.
inline uint8x16_t FifthBits(uint32_t bits) { return vandq_u8(SpreadBits(bits), vdupq_n_u8(16)); }
inline int8x16_t FromTable(const std::array<int8_t, 16>& table, uint8x16_t index) {
  return vqtbl1q_s8(vld1q_s8(&table[0]), index);
}

template <typename Block, int kLengthValue, int kGroupValue, bool kMinimumValue>
struct BlockReader {
  static constexpr int kBytes = sizeof(Block);
  static constexpr int kLength = kLengthValue;
  static constexpr int kGroup = kGroupValue;
  static constexpr bool kScaled = kGroup < kLength;
  static constexpr bool kMinimum = kMinimumValue;
  static constexpr int kChains = kLength == 32 ? 8 : 1;

  explicit BlockReader(const std::byte* p) : block(*reinterpret_cast<const Block*>(p)) {}
  float d() const { return ToFloat(block.d); }

  const Block& block;
};

// --- blocks of 32: low nibbles first, then the high ones ---

struct ReaderQ4_0 : BlockReader<formats::BlockQ4_0, 32, 32, false> {
  using BlockReader::BlockReader;
  template <typename Visit>
  void Codes(Visit visit) const {
    const uint8x16_t v = vld1q_u8(block.qs);
    const int8x16_t offset = vdupq_n_s8(8);
    visit(0, vsubq_s8(Signed(LowNibbles(v)), offset), vsubq_s8(Signed(HighNibbles(v)), offset));
  }
};

struct ReaderQ4_1 : BlockReader<formats::BlockQ4_1, 32, 32, true> {
  using BlockReader::BlockReader;
  float dmin() const { return -ToFloat(block.m); }
  template <typename Visit>
  void Codes(Visit visit) const {
    const uint8x16_t v = vld1q_u8(block.qs);
    visit(0, Signed(LowNibbles(v)), Signed(HighNibbles(v)));
  }
};

struct ReaderQ5_0 : BlockReader<formats::BlockQ5_0, 32, 32, false> {
  using BlockReader::BlockReader;
  template <typename Visit>
  void Codes(Visit visit) const {
    const uint8x16_t v = vld1q_u8(block.qs);
    const uint32_t high = formats::Load32(block.qh);
    const int8x16_t offset = vdupq_n_s8(16);
    visit(0, vsubq_s8(Signed(vorrq_u8(LowNibbles(v), FifthBits(high))), offset),
          vsubq_s8(Signed(vorrq_u8(HighNibbles(v), FifthBits(high >> 16))), offset));
  }
};

struct ReaderQ5_1 : BlockReader<formats::BlockQ5_1, 32, 32, true> {
  using BlockReader::BlockReader;
  float dmin() const { return -ToFloat(block.m); }
  template <typename Visit>
  void Codes(Visit visit) const {
    const uint8x16_t v = vld1q_u8(block.qs);
    const uint32_t high = formats::Load32(block.qh);
    visit(0, Signed(vorrq_u8(LowNibbles(v), FifthBits(high))),
          Signed(vorrq_u8(HighNibbles(v), FifthBits(high >> 16))));
  }
};

struct ReaderQ8_0 : BlockReader<formats::BlockQ8_0, 32, 32, false> {
  using BlockReader::BlockReader;
  template <typename Visit>
  void Codes(Visit visit) const {
    visit(0, vld1q_s8(block.qs), vld1q_s8(block.qs + 16));
  }
};

struct ReaderIQ4_NL : BlockReader<formats::BlockIQ4_NL, 32, 32, false> {
  using BlockReader::BlockReader;
  template <typename Visit>
  void Codes(Visit visit) const {
    const uint8x16_t v = vld1q_u8(block.qs);
    visit(0, FromTable(formats::kValuesIQ4_NL, LowNibbles(v)),
          FromTable(formats::kValuesIQ4_NL, HighNibbles(v)));
  }
};

// --- super-blocks of 256 ---

// [field][scale][nibble]: scale times the low or the high two bits of the nibble.
struct ScaledTwoBits {
  alignas(64) int8_t value[2][16][16] = {};
  constexpr ScaledTwoBits() {
    for (int scale = 0; scale < 16; ++scale) {
      for (int nibble = 0; nibble < 16; ++nibble) {
        value[0][scale][nibble] = static_cast<int8_t>(scale * (nibble & 3));
        value[1][scale][nibble] = static_cast<int8_t>(scale * (nibble >> 2));
      }
    }
  }
};
constexpr ScaledTwoBits kScaledTwoBits;

struct ReaderQ2_K : BlockReader<formats::BlockQ2_K, 256, 16, true> {
  using BlockReader::BlockReader;
  float dmin() const { return ToFloat(block.dmin); }
  int8x16_t Scales() const { return Signed(LowNibbles(vld1q_u8(block.scales))); }
  int8x16_t Mins() const { return Signed(HighNibbles(vld1q_u8(block.scales))); }
  template <typename Visit>
  void Codes(Visit visit) const {
    for (int half = 0; half < 2; ++half) {
      const uint8x16_t a = vld1q_u8(block.qs + 32 * half);
      const uint8x16_t b = vld1q_u8(block.qs + 32 * half + 16);
      for (int plane = 0; plane < 4; ++plane) {
        visit(4 * half + plane, Signed(TwoBits(a, 2 * plane)), Signed(TwoBits(b, 2 * plane)));
      }
    }
  }
  // As Codes, each times its scale: at most 45. A look-up does both, and no group needs a step of its own.
  template <typename Visit>
  void ScaledCodes(Visit visit) const {
    for (int half = 0; half < 2; ++half) {
      const uint8x16_t a = vld1q_u8(block.qs + 32 * half);
      const uint8x16_t b = vld1q_u8(block.qs + 32 * half + 16);
      uint64_t scales;
      std::memcpy(&scales, block.scales + 8 * half, sizeof(scales));
      for (int plane = 0; plane < 4; ++plane) {
        const auto look_up = [&](uint8x16_t bytes, int group) {
          const int8_t* table = kScaledTwoBits.value[plane % 2][scales >> (8 * (2 * plane + group)) & 15];
          return vqtbl1q_s8(vld1q_s8(table), plane < 2 ? LowNibbles(bytes) : HighNibbles(bytes));
        };
        visit(4 * half + plane, look_up(a, 0), look_up(b, 1));
      }
    }
  }
};

struct ReaderQ3_K : BlockReader<formats::BlockQ3_K, 256, 16, false> {
  using BlockReader::BlockReader;
  int8x16_t Scales() const {
    const uint8x8_t packed = vld1_u8(block.scales);
    const uint8x16_t low = vcombine_u8(vand_u8(packed, vdup_n_u8(15)), vshr_n_u8(packed, 4));
    const int32x4_t shifts = {0, -2, -4, -6};
    const uint32x4_t moved = vshlq_u32(vdupq_n_u32(formats::Load32(block.scales + 8)), shifts);
    const uint8x16_t high = vandq_u8(vreinterpretq_u8_u32(moved), vdupq_n_u8(3));
    return vsubq_s8(Signed(vorrq_u8(low, vshlq_n_u8(high, 4))), vdupq_n_s8(32));
  }
  template <typename Visit>
  void Codes(Visit visit) const {
    const uint8x16_t high_a = vld1q_u8(block.hmask);
    const uint8x16_t high_b = vld1q_u8(block.hmask + 16);
    const int8x16_t offset = vdupq_n_s8(4);
    for (int half = 0; half < 2; ++half) {
      const uint8x16_t a = vld1q_u8(block.qs + 32 * half);
      const uint8x16_t b = vld1q_u8(block.qs + 32 * half + 16);
      for (int plane = 0; plane < 4; ++plane) {
        const int g = 4 * half + plane;
        visit(g, vsubq_s8(Signed(vorrq_u8(TwoBits(a, 2 * plane), WhereBit(high_a, g, 4))), offset),
              vsubq_s8(Signed(vorrq_u8(TwoBits(b, 2 * plane), WhereBit(high_b, g, 4))), offset));
      }
    }
  }
};

// What Q4_K and Q5_K share: eight scales and eight minimums of 6 bits, four to a word.
template <typename Block>
struct SixBitReader : BlockReader<Block, 256, 32, true> {
  using BlockReader<Block, 256, 32, true>::BlockReader;
  float dmin() const { return ToFloat(this->block.dmin); }
  int8x16_t Scales() const {
    const uint32_t first = Word(0), third = Word(2);
    return Join(first & 0x3f3f3f3fu, (third & 0x0f0f0f0fu) | ((first >> 2) & 0x30303030u));
  }
  int8x16_t Mins() const {
    const uint32_t second = Word(1), third = Word(2);
    return Join(second & 0x3f3f3f3fu, ((third >> 4) & 0x0f0f0f0fu) | ((second >> 2) & 0x30303030u));
  }

 private:
  uint32_t Word(int i) const { return formats::Load32(this->block.scales + 4 * i); }
  static int8x16_t Join(uint32_t low, uint32_t high) {
    return vcombine_s8(vcreate_s8(low | (static_cast<uint64_t>(high) << 32)), vdup_n_s8(0));
  }
};

struct ReaderQ4_K : SixBitReader<formats::BlockQ4_K> {
  using SixBitReader::SixBitReader;
  template <typename Visit>
  void Codes(Visit visit) const {
    for (int pair = 0; pair < 4; ++pair) {
      const uint8x16_t a = vld1q_u8(block.qs + 32 * pair);
      const uint8x16_t b = vld1q_u8(block.qs + 32 * pair + 16);
      visit(2 * pair, Signed(LowNibbles(a)), Signed(LowNibbles(b)));
      visit(2 * pair + 1, Signed(HighNibbles(a)), Signed(HighNibbles(b)));
    }
  }
};

struct ReaderQ5_K : SixBitReader<formats::BlockQ5_K> {
  using SixBitReader::SixBitReader;
  template <typename Visit>
  void Codes(Visit visit) const {
    const uint8x16_t high_a = vld1q_u8(block.qh);
    const uint8x16_t high_b = vld1q_u8(block.qh + 16);
    for (int pair = 0; pair < 4; ++pair) {
      const uint8x16_t a = vld1q_u8(block.qs + 32 * pair);
      const uint8x16_t b = vld1q_u8(block.qs + 32 * pair + 16);
      const int g = 2 * pair;
      visit(g, Signed(vorrq_u8(LowNibbles(a), WhereBit(high_a, g, 16))),
            Signed(vorrq_u8(LowNibbles(b), WhereBit(high_b, g, 16))));
      visit(g + 1, Signed(vorrq_u8(HighNibbles(a), WhereBit(high_a, g + 1, 16))),
            Signed(vorrq_u8(HighNibbles(b), WhereBit(high_b, g + 1, 16))));
    }
  }
};

struct ReaderQ6_K : BlockReader<formats::BlockQ6_K, 256, 16, false> {
  using BlockReader::BlockReader;
  int8x16_t Scales() const { return vld1q_s8(block.scales); }
  template <typename Visit>
  void Codes(Visit visit) const {
    const int8x16_t offset = vdupq_n_s8(32);
    const auto join = [&](uint8x16_t low, uint8x16_t high, int plane) {
      return vsubq_s8(Signed(vorrq_u8(low, vshlq_n_u8(TwoBits(high, 2 * plane), 4))), offset);
    };
    for (int half = 0; half < 2; ++half) {
      const uint8_t* ql = block.ql + 64 * half;
      const uint8x16_t high_a = vld1q_u8(block.qh + 32 * half);
      const uint8x16_t high_b = vld1q_u8(block.qh + 32 * half + 16);
      for (int part = 0; part < 2;
           ++part) {  // 32 bytes each: elements 32·part … in the low nibbles, 64 further in the high
        const uint8x16_t a = vld1q_u8(ql + 32 * part);
        const uint8x16_t b = vld1q_u8(ql + 32 * part + 16);
        visit(4 * half + part, join(LowNibbles(a), high_a, part), join(LowNibbles(b), high_b, part));
        visit(4 * half + part + 2, join(HighNibbles(a), high_a, part + 2),
              join(HighNibbles(b), high_b, part + 2));
      }
    }
  }
};

struct ReaderIQ4_XS : BlockReader<formats::BlockIQ4_XS, 256, 32, false> {
  using BlockReader::BlockReader;
  int8x16_t Scales() const {
    const uint8x8_t packed = vcreate_u8(formats::Load32(block.scales_l));
    const uint8x8_t low = vzip1_u8(vand_u8(packed, vdup_n_u8(15)), vshr_n_u8(packed, 4));
    const int16x8_t shifts = {0, -2, -4, -6, -8, -10, -12, -14};
    const uint16x8_t moved =
        vshlq_u16(vdupq_n_u16(static_cast<uint16_t>(formats::Load16(block.scales_h))), shifts);
    const uint8x8_t high = vand_u8(vmovn_u16(moved), vdup_n_u8(3));
    const uint8x8_t scales = vorr_u8(low, vshl_n_u8(high, 4));
    return vcombine_s8(vsub_s8(vreinterpret_s8_u8(scales), vdup_n_s8(32)), vdup_n_s8(0));
  }
  template <typename Visit>
  void Codes(Visit visit) const {
    for (int g = 0; g < 8; ++g) {
      const uint8x16_t v = vld1q_u8(block.qs + 16 * g);
      visit(g, FromTable(formats::kValuesIQ4_NL, LowNibbles(v)),
            FromTable(formats::kValuesIQ4_NL, HighNibbles(v)));
    }
  }
};

}  // namespace
}  // namespace sluice::kernels::arm
