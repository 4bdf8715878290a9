// The formats of one to three bits, and MXFP4, in NEON registers: readers in the sense of formats.h.
// Private to this folder; in an anonymous namespace, as formats.h.
#pragma once

#include "kernels/arm/formats.h"
#include "kernels/grid_bits.h"

namespace sluice::kernels::arm {
namespace {

inline uint64_t Load64(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

// --- IQ1 to IQ3: vectors of 8 or 4 codes by their index in a grid ---

inline int8x16_t Vectors(uint64_t a, uint64_t b) { return vcombine_s8(vcreate_s8(a), vcreate_s8(b)); }
inline int8x16_t Vectors(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return Vectors(a | static_cast<uint64_t>(b) << 32, c | static_cast<uint64_t>(d) << 32);
}

// −v where bit i of `bits` is set.
inline int8x16_t Negate(int8x16_t v, uint32_t bits) {
  const int8x16_t negative = Signed(SpreadBits(bits));
  return vsubq_s8(veorq_s8(v, negative), negative);
}

inline uint8x8_t OddScales(uint8x8_t s) { return vorr_u8(vshl_n_u8(s, 1), vdup_n_u8(1)); }  // 2s + 1

// Eight scales, of groups of 32; the other lanes are not looked at.
inline int8x16_t EightScales(uint8x8_t s) { return Signed(vcombine_u8(OddScales(s), vdup_n_u8(0))); }
// The same from the top four bits of eight words.
inline int8x16_t TopScales(uint32x4_t first, uint32x4_t second) {
  const uint16x4_t low = vmovn_u32(vshrq_n_u32(first, 28)), high = vmovn_u32(vshrq_n_u32(second, 28));
  return EightScales(vmovn_u16(vcombine_u16(low, high)));
}
// Sixteen from eight bytes of nibbles, the low one first.
inline int8x16_t NibbleScales(const uint8_t* scales) {
  const uint8x8_t bytes = vld1_u8(scales);
  const uint8x8_t low = vand_u8(bytes, vdup_n_u8(15)), high = vshr_n_u8(bytes, 4);
  return Signed(vcombine_u8(OddScales(vzip1_u8(low, high)), OddScales(vzip2_u8(low, high))));
}

struct ReaderIQ2_XXS : BlockReader<formats::BlockIQ2_XXS, 256, 32, false> {
  using BlockReader::BlockReader;
  float d() const { return 0.125f * ToFloat(block.d); }
  int8x16_t Scales() const {
    const auto words = [this](int i) { return vreinterpretq_u32_u8(vld1q_u8(block.qs + 16 * i)); };
    return TopScales(vuzp2q_u32(words(0), words(1)), vuzp2q_u32(words(2), words(3)));
  }
  template <typename Visit>
  void Codes(Visit visit) const {
    const auto& grid = formats::kGridIQ2_XXS;
    for (int g = 0; g < 8; ++g) {
      const uint8_t* at = block.qs + 8 * g;
      const uint32_t signs = SpreadSigns(formats::Load32(at + 4));
      visit(g, Negate(Vectors(grid[at[0]], grid[at[1]]), signs),
            Negate(Vectors(grid[at[2]], grid[at[3]]), signs >> 16));
    }
  }
};

struct ReaderIQ2_XS : BlockReader<formats::BlockIQ2_XS, 256, 16, false> {
  using BlockReader::BlockReader;
  float d() const { return 0.125f * ToFloat(block.d); }
  int8x16_t Scales() const { return NibbleScales(block.scales); }
  template <typename Visit>
  void Codes(Visit visit) const {
    const auto& grid = formats::kGridIQ2_XS;
    for (int g = 0; g < 8; ++g) {
      const uint64_t at = Load64(block.qs + 8 * g);
      const uint32_t signs = SignsOfWords(at);
      visit(g, Negate(Vectors(grid[at & 511], grid[at >> 16 & 511]), signs),
            Negate(Vectors(grid[at >> 32 & 511], grid[at >> 48 & 511]), signs >> 16));
    }
  }
};

struct ReaderIQ2_S : BlockReader<formats::BlockIQ2_S, 256, 16, false> {
  using BlockReader::BlockReader;
  float d() const { return 0.125f * ToFloat(block.d); }
  int8x16_t Scales() const { return NibbleScales(block.scales); }
  template <typename Visit>
  void Codes(Visit visit) const {
    for (int g = 0; g < 8; ++g) {
      const uint32_t high = block.qh[g], signs = formats::Load32(block.signs + 4 * g);
      const auto entry = [&](int k) {
        return formats::kGridIQ2_S[block.qs[4 * g + k] | (high << (8 - 2 * k) & 0x300)];
      };
      visit(g, Negate(Vectors(entry(0), entry(1)), signs), Negate(Vectors(entry(2), entry(3)), signs >> 16));
    }
  }
};

struct ReaderIQ3_XXS : BlockReader<formats::BlockIQ3_XXS, 256, 32, false> {
  using BlockReader::BlockReader;
  float d() const { return 0.25f * ToFloat(block.d); }
  int8x16_t Scales() const {
    return TopScales(vreinterpretq_u32_u8(vld1q_u8(block.scales_and_signs)),
                     vreinterpretq_u32_u8(vld1q_u8(block.scales_and_signs + 16)));
  }
  template <typename Visit>
  void Codes(Visit visit) const {
    const auto& grid = formats::kGridIQ3_XXS;
    for (int g = 0; g < 8; ++g) {
      const uint8_t* at = block.qs + 8 * g;
      const uint32_t signs = SpreadSigns(formats::Load32(block.scales_and_signs + 4 * g));
      visit(g, Negate(Vectors(grid[at[0]], grid[at[1]], grid[at[2]], grid[at[3]]), signs),
            Negate(Vectors(grid[at[4]], grid[at[5]], grid[at[6]], grid[at[7]]), signs >> 16));
    }
  }
};

struct ReaderIQ3_S : BlockReader<formats::BlockIQ3_S, 256, 32, false> {
  using BlockReader::BlockReader;
  int8x16_t Scales() const {
    const uint8x8_t bytes = vcreate_u8(formats::Load32(block.scales));
    return EightScales(vzip1_u8(vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8(bytes, 4)));
  }
  template <typename Visit>
  void Codes(Visit visit) const {
    for (int g = 0; g < 8; ++g) {
      const uint32_t high = block.qh[g], signs = formats::Load32(block.signs + 4 * g);
      const auto entry = [&](int k) {
        return formats::kGridIQ3_S[block.qs[8 * g + k] | (high >> k & 1) << 8];
      };
      visit(g, Negate(Vectors(entry(0), entry(1), entry(2), entry(3)), signs),
            Negate(Vectors(entry(4), entry(5), entry(6), entry(7)), signs >> 16));
    }
  }
};

// IQ1: two vectors of −1, 0, 1, times 8, plus or minus 1.
inline int8x16_t Eighths(uint64_t a, bool minus_a, uint64_t b, bool minus_b) {
  const auto shift = [](bool minus) { return vdup_n_s8(minus ? -1 : 1); };
  return vaddq_s8(vshlq_n_s8(Vectors(a, b), 3), vcombine_s8(shift(minus_a), shift(minus_b)));
}

struct ReaderIQ1_S : BlockReader<formats::BlockIQ1_S, 256, 32, false> {
  using BlockReader::BlockReader;
  float d() const { return 0.125f * ToFloat(block.d); }
  int8x16_t Scales() const {
    const uint16x8_t words = vreinterpretq_u16_u8(vld1q_u8(block.qh));
    return EightScales(vand_u8(vmovn_u16(vshrq_n_u16(words, 12)), vdup_n_u8(7)));
  }
  template <typename Visit>
  void Codes(Visit visit) const {
    for (int g = 0; g < 8; ++g) {
      const uint32_t packed = formats::Load16(block.qh + 2 * g);
      const bool minus = (packed & 0x8000) != 0;
      const auto entry = [&](int k) {
        return formats::kGridIQ1[block.qs[4 * g + k] | (packed >> (3 * k) & 7) << 8];
      };
      visit(g, Eighths(entry(0), minus, entry(1), minus), Eighths(entry(2), minus, entry(3), minus));
    }
  }
};

struct ReaderIQ1_M {
  static constexpr int kBytes = sizeof(formats::BlockIQ1_M);
  static constexpr int kLength = 256;
  static constexpr int kGroup = 16;
  static constexpr bool kScaled = true;
  static constexpr bool kMinimum = false;
  static constexpr int kChains = 1;

  explicit ReaderIQ1_M(const std::byte* p) : block(*reinterpret_cast<const formats::BlockIQ1_M*>(p)) {}
  float d() const { return 0.125f * HalfToFloat(HalfOfTopNibbles(Load64(block.scales))); }
  int8x16_t Scales() const {
    const uint16x4_t words = vcreate_u16(Load64(block.scales));
    const int16x8_t shifts = {0, -3, -6, -9, 0, -3, -6, -9};
    const auto eight = [&](uint16x4_t a, uint16x4_t b) {
      return OddScales(vand_u8(vmovn_u16(vshlq_u16(vcombine_u16(a, b), shifts)), vdup_n_u8(7)));
    };
    return Signed(vcombine_u8(eight(vdup_lane_u16(words, 0), vdup_lane_u16(words, 1)),
                              eight(vdup_lane_u16(words, 2), vdup_lane_u16(words, 3))));
  }
  template <typename Visit>
  void Codes(Visit visit) const {
    for (int g = 0; g < 8; ++g) {
      const uint32_t packed = formats::Load16(block.qh + 2 * g);
      const auto entry = [&](int k) {
        return formats::kGridIQ1[block.qs[4 * g + k] | (packed >> (4 * k) & 7) << 8];
      };
      const auto minus = [&](int k) { return (packed >> (4 * k) & 8) != 0; };
      visit(g, Eighths(entry(0), minus(0), entry(1), minus(1)),
            Eighths(entry(2), minus(2), entry(3), minus(3)));
    }
  }

  const formats::BlockIQ1_M& block;
};

// --- ternary: 0, 1, 2, less 1 ---

struct ReaderTQ2_0 : BlockReader<formats::BlockTQ2_0, 256, 256, false> {
  using BlockReader::BlockReader;
  template <typename Visit>
  void Codes(Visit visit) const {
    const int8x16_t one = vdupq_n_s8(1);
    for (int half = 0; half < 2; ++half) {
      const uint8x16_t a = vld1q_u8(block.qs + 32 * half);
      const uint8x16_t b = vld1q_u8(block.qs + 32 * half + 16);
      for (int plane = 0; plane < 4; ++plane) {
        visit(4 * half + plane, vsubq_s8(Signed(TwoBits(a, 2 * plane)), one),
              vsubq_s8(Signed(TwoBits(b, 2 * plane)), one));
      }
    }
  }
};

struct ReaderTQ1_0 : BlockReader<formats::BlockTQ1_0, 256, 256, false> {
  using BlockReader::BlockReader;
  template <typename Visit>
  void Codes(Visit visit) const {
    // Five digits of each of 32 bytes, then five of each of 16, then four of each of 4.
    uint8x16_t a = vld1q_u8(block.qs), b = vld1q_u8(block.qs + 16);
    for (int n = 0; n < 5; ++n, a = Next(a), b = Next(b)) visit(n, Digit(a), Digit(b));
    const uint8x16_t c0 = vld1q_u8(block.qs + 32), c1 = Next(c0), c2 = Next(c1), c3 = Next(c2), c4 = Next(c3);
    visit(5, Digit(c0), Digit(c1));
    visit(6, Digit(c2), Digit(c3));
    const uint8x16_t e0 = vreinterpretq_u8_u32(vdupq_n_u32(formats::Load32(block.qh)));
    const uint8x16_t e1 = Next(e0), e2 = Next(e1), e3 = Next(e2);
    const auto pair = [](uint8x16_t x, uint8x16_t y) {
      return vget_low_u32(vzip1q_u32(vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(y)));
    };
    visit(7, Digit(c4), Digit(vreinterpretq_u8_u32(vcombine_u32(pair(e0, e1), pair(e2, e3)))));
  }

 private:
  // Bytes are fractions of 256 in base 3: times 3, what is whole drops out at the top.
  static uint8x16_t Next(uint8x16_t f) { return vaddq_u8(f, vaddq_u8(f, f)); }
  // The first digit of a fraction f, floor(3 · f / 256), less 1: a digit of 1 from 86 on, of 2 from 171 on.
  static int8x16_t Digit(uint8x16_t f) {
    const uint8x16_t steps = vaddq_u8(vcgeq_u8(f, vdupq_n_u8(86)), vcgeq_u8(f, vdupq_n_u8(171)));
    return vsubq_s8(vdupq_n_s8(-1), Signed(steps));
  }
};

// --- plain codes of one and two bits ---

struct ReaderQ2_0 : BlockReader<formats::BlockQ2_0, 64, 64, false> {
  using BlockReader::BlockReader;
  template <typename Visit>
  void Codes(Visit visit) const {
    const uint8x16_t bytes = vld1q_u8(block.qs);
    const int8x16_t shifts = {0, -2, -4, -6, 0, -2, -4, -6, 0, -2, -4, -6, 0, -2, -4, -6};
    const auto sixteen = [&](uint8_t first) {  // from four bytes
      const uint8x16_t index = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
      const uint8x16_t spread = vqtbl1q_u8(bytes, vaddq_u8(index, vdupq_n_u8(first)));
      return vsubq_s8(Signed(vandq_u8(vshlq_u8(spread, shifts), vdupq_n_u8(3))), vdupq_n_s8(1));
    };
    visit(0, sixteen(0), sixteen(4));
    visit(1, sixteen(8), sixteen(12));
  }
};

struct ReaderQ1_0 : BlockReader<formats::BlockQ1_0, 128, 128, false> {
  using BlockReader::BlockReader;
  template <typename Visit>
  void Codes(Visit visit) const {
    const auto sixteen = [](uint32_t bits) {  // −1, or 1 where the bit is set
      const int8x16_t set = Signed(SpreadBits(bits));
      return vsubq_s8(vdupq_n_s8(-1), vaddq_s8(set, set));
    };
    for (int g = 0; g < 4; ++g) {
      const uint32_t bits = formats::Load32(block.qs + 4 * g);
      visit(g, sixteen(bits), sixteen(bits >> 16));
    }
  }
};

// --- 4-bit floats ---

struct ReaderMXFP4 {
  static constexpr int kBytes = sizeof(formats::BlockMXFP4);
  static constexpr int kLength = 32;
  static constexpr int kGroup = 32;
  static constexpr bool kScaled = false;
  static constexpr bool kMinimum = false;
  static constexpr int kChains = 8;

  explicit ReaderMXFP4(const std::byte* p) : block(*reinterpret_cast<const formats::BlockMXFP4*>(p)) {}
  // 2^(e − 128). For e of 0 and 1 the float is subnormal.
  float d() const {
    const uint32_t e = block.e;
    return std::bit_cast<float>(e > 1 ? (e - 1) << 23 : 0x200000u << e);
  }
  template <typename Visit>
  void Codes(Visit visit) const {
    const uint8x16_t v = vld1q_u8(block.qs);
    visit(0, FromTable(formats::kValuesFP4, LowNibbles(v)), FromTable(formats::kValuesFP4, HighNibbles(v)));
  }

  const formats::BlockMXFP4& block;
};

}  // namespace
}  // namespace sluice::kernels::arm
