// Products with NVFP4: blocks of four groups of 16, each of which is a float step with a scale of its own;
// the groups of two blocks are the eight chains of the canonical order. Four rows at a time, which lie in the
// lanes of the float steps. Layout: formats/blocks.h. Private to this folder; in an anonymous namespace, as
// formats.h.
#pragma once

#include "kernels/arm/products.h"

namespace sluice::kernels::arm {
namespace {

constexpr int kNvfp4Groups = 4;

// Half the UE4M3 scales of group g, packed as the four rows' words have them. Exponent and mantissa of 7
// bits, moved to where a float has its own, are the scale times 2^(7 − 127), subnormals included. 0x7f is 0;
// the sign doesn't count.
inline float32x4_t GroupScales(uint32x4_t packed, int g) {
  const uint32x4_t byte = vandq_u32(vshlq_u32(packed, vdupq_n_s32(-8 * g)), vdupq_n_u32(0xff));
  const uint32x4_t bits = vshlq_n_u32(vandq_u32(byte, vdupq_n_u32(0x7f)), 20);
  const uint32x4_t kept = vbicq_u32(bits, vceqq_u32(byte, vdupq_n_u32(0x7f)));
  return vmulq_n_f32(vreinterpretq_f32_u32(kept), 0x1p119f);
}

// The codes of a group: the low nibbles of eight bytes, then the high ones.
inline int8x16_t GroupCodes(const formats::Byte* qs) {
  const uint8x8_t bytes = vld1_u8(qs);
  return FromTable(formats::kValuesFP4, vcombine_u8(vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8(bytes, 4)));
}

// Blocks k of four rows.
struct Nvfp4Blocks {
  Nvfp4Blocks(const RowPointers& pointers, int64_t k) {
    for (int j = 0; j < kRows; ++j) {
      row[j] = reinterpret_cast<const formats::BlockNVFP4*>(pointers.row[j]) + k;
      packed[j] = formats::Load32(row[j]->d);
    }
  }
  int8x16_t Codes(int j, int g) const { return GroupCodes(row[j]->qs + 8 * g); }
  float32x4_t Scales(int g) const { return GroupScales(vld1q_u32(packed), g); }

  const formats::BlockNVFP4* row[kRows];
  uint32_t packed[kRows];  // the scales
};

template <typename Isa>
void MatmulNvfp4One(const MatmulArgs& args) {
  constexpr int kLength = 16 * kNvfp4Groups;
  const int64_t blocks = args.x.columns / kLength;
  const int32x4_t zero = vdupq_n_s32(0);
  for (int64_t r = 0; r < args.rows; r += kRows) {
    const RowPointers pointers(args, r);
    const int8_t* q = args.x.q;
    const float* scale = args.x.scale;
    float32x4_t chain[2 * kNvfp4Groups];
    for (float32x4_t& acc : chain) acc = vdupq_n_f32(0);
    for (int64_t k = 0; k < blocks; ++k, q += kLength, scale += 2) {
      const Nvfp4Blocks block(pointers, k);
      float32x4_t* const half = chain + k % 2 * kNvfp4Groups;
      for (int g = 0; g < kNvfp4Groups; ++g) {
        const int8x16_t x = vld1q_s8(q + 16 * g);
        const auto dot = [&](int j) { return Isa::Dot(zero, block.Codes(j, g), x); };
        half[g] = Step<false>(half[g], block.Scales(g), vdupq_n_f32(0), scale[g / 2],
                              SumEach(dot(0), dot(1), dot(2), dot(3)), zero);
      }
    }
    StoreRows(Fold<2 * kNvfp4Groups>(chain), args.rows - r, args.y + r);
  }
}

// What RunPanel takes for a block: a group.
struct Nvfp4Steps {
  static constexpr int kLength = 16;
  static constexpr int kGroup = 16;
  static constexpr bool kScaled = false;
  static constexpr bool kMinimum = false;
  static constexpr int kChains = 8;
};

// Unpacks groups first … first + groups − 1 of four rows, both multiples of four.
template <typename Isa>
void FillNvfp4Panel(const RowPointers& pointers, int64_t first, int64_t groups, Panel& panel) {
  for (int64_t k = 0; k < groups; k += kNvfp4Groups) {
    const Nvfp4Blocks block(pointers, (first + k) / kNvfp4Groups);
    for (int g = 0; g < kNvfp4Groups; ++g) {
      const int8x16_t rows[kRows] = {block.Codes(0, g), block.Codes(1, g), block.Codes(2, g),
                                     block.Codes(3, g)};
      Isa::Pack(rows, panel.codes + (k + g) * 16 * kRows);
      vst1q_f32(panel.d + (k + g) * kRows, block.Scales(g));
    }
  }
}

template <typename Isa>
void MatmulNvfp4(const MatmulArgs& args) {
  if (args.x.batch == 1) {
    MatmulNvfp4One<Isa>(args);
  } else {
    MatmulMany<Isa, Nvfp4Steps, FillNvfp4Panel<Isa>>(args);
  }
}

}  // namespace
}  // namespace sluice::kernels::arm
