// The block of each quantised weight format, byte for byte as GGUF files store it.
//
// Source of the layouts: the public definition of ggml's formats (ggml-common.h of ggml 0.23).
// docs/formats.md draws them; unpack.h turns each into one common integer form, which is the definition that
// decoding and kernels share.
//
// Blocks lie at any address (a row starts wherever its tensor's offset says), so every member is a byte: a
// block may be read in place through a reference. 16-bit members are little-endian and read with Load16.
//
// Notation in the comments: i is the element's index in the block, x[i] its value; n[j] the nibble j of a
// byte array (low nibble of byte 0 first would be j = 0); f16 a 16-bit IEEE float.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::formats {

using Byte = uint8_t;

// Two bytes, little-endian, at any address.
struct Half {
  Byte bytes[2];
  uint16_t bits() const { return static_cast<uint16_t>(bytes[0] | (bytes[1] << 8)); }
};

inline uint32_t Load16(const Byte* p) { return static_cast<uint32_t>(p[0] | (p[1] << 8)); }
inline uint32_t Load32(const Byte* p) {
  return Load16(p) | (static_cast<uint32_t>(p[2]) << 16) | (static_cast<uint32_t>(p[3]) << 24);
}

inline void Store16(uint32_t value, Byte* p) {
  p[0] = static_cast<Byte>(value);
  p[1] = static_cast<Byte>(value >> 8);
}
inline void Store32(uint32_t value, Byte* p) {
  Store16(value, p);
  Store16(value >> 16, p + 2);
}

// --- Legacy: blocks of 32. Byte j of qs holds element j in its low nibble and element j + 16 in its high
// one. ---

struct BlockQ4_0 {  // x = d · (q − 8)
  Half d;
  Byte qs[16];
};
struct BlockQ4_1 {  // x = d · q + m
  Half d;
  Half m;
  Byte qs[16];
};
struct BlockQ5_0 {  // x = d · (q − 16); bit i of qh (32 bits, little-endian) is bit 4 of element i
  Half d;
  Byte qh[4];
  Byte qs[16];
};
struct BlockQ5_1 {  // x = d · q + m; qh as in Q5_0
  Half d;
  Half m;
  Byte qh[4];
  Byte qs[16];
};
struct BlockQ8_0 {  // x = d · q, q signed
  Half d;
  int8_t qs[32];
};
struct BlockQ1_0 {  // 128 elements, x = bit ? d : −d; bit i % 8 of byte i / 8
  Half d;
  Byte qs[16];
};
struct BlockQ2_0 {  // 64 elements, x = d · (q − 1), q in 0 … 3; bits 2·(i % 4) of byte i / 4
  Half d;
  Byte qs[16];
};

// --- K-quants: super-blocks of 256, in halves of 128. ---
// "2-bit planes": in half h, element 32·p + l (p = 0 … 3, l = 0 … 31) stands in bits 2p of byte 32·h + l.

struct BlockQ2_K {  // groups of 16: x = d · (scales[g] & 15) · q − dmin · (scales[g] >> 4)
  Byte scales[16];
  Byte qs[64];  // 2-bit planes
  Half d;
  Half dmin;
};
// Q3_K: s[g] has 6 bits. The low four are nibble g / 8 of scales[g % 8], the high two bits 2·(g / 4) of
// scales[8 + g % 4].
struct BlockQ3_K {  // groups of 16: x = d · (s[g] − 32) · (q − 4), q = low bits + 4 · high bit
  Byte hmask[32];   // bit i / 32 of byte i % 32 is bit 2 of element i
  Byte qs[64];      // low bits, 2-bit planes
  Byte scales[12];
  Half d;
};
// Q4_K and Q5_K: s[g] and m[g] of 6 bits stand in scales[12] like this:
//   g < 4:  s = scales[g] & 63                                   m = scales[g + 4] & 63
//   g ≥ 4:  s = (scales[g + 4] & 15) | (scales[g − 4] >> 6) << 4
//           m = (scales[g + 4] >> 4) | (scales[g] >> 6) << 4
// qs: elements 64·p … 64·p + 31 are the low nibbles of bytes 32·p …, the next 32 their high nibbles.
struct BlockQ4_K {  // groups of 32: x = d · s[g] · q − dmin · m[g]
  Half d;
  Half dmin;
  Byte scales[12];
  Byte qs[128];
};
struct BlockQ5_K {  // as Q4_K with a fifth bit
  Half d;
  Half dmin;
  Byte scales[12];
  Byte qh[32];  // bit i / 32 of byte i % 32 is bit 4 of element i
  Byte qs[128];
};
struct BlockQ6_K {  // groups of 16: x = d · scales[g] · (q − 32)
  Byte ql[128];  // half h: low nibbles of bytes 64·h + 0 … 63 are elements 0 … 63, high nibbles 64 … 127
  Byte qh[64];  // bits 4 and 5, 2-bit planes
  int8_t scales[16];
  Half d;
};

// --- Code-book formats: super-blocks of 256. Grids and signs: codebooks.h. ---

// 32 elements in 8 bytes: four grid indices of 8 bits, then 32 bits: 4 × 7 sign bits, scale s in the top 4.
struct BlockIQ2_XXS {  // x = d · (2s + 1) / 8 · ±grid
  Half d;
  Byte qs[64];
};
// 8 elements in 16 bits: grid index of 9 bits, signs of 7.
struct BlockIQ2_XS {  // x = d · (2s + 1) / 8 · ±grid
  Half d;
  Byte qs[64];
  Byte scales[8];  // one nibble for each 16 elements
};
// Vector j of 8 elements: grid index of 10 bits, the low 8 in qs[j], the high 2 at bits 2·(j % 4) of qh[j /
// 4].
struct BlockIQ2_S {  // x = d · (2s + 1) / 8 · ±grid
  Half d;
  Byte qs[32];
  Byte signs[32];  // bit i % 8 of byte i / 8: negative
  Byte qh[8];
  Byte scales[8];  // one nibble for each 16 elements
};
// Vector of 4 elements: grid index of 8 bits. For each 32 elements 32 bits: 4 × 7 sign bits, scale s in the
// top 4.
struct BlockIQ3_XXS {  // x = d · (2s + 1) / 4 · ±grid
  Half d;
  Byte qs[64];
  Byte scales_and_signs[32];
};
// Vector j of 4 elements: grid index of 9 bits, the low 8 in qs[j], bit j % 8 of qh[j / 8] on top.
struct BlockIQ3_S {  // x = d · (2s + 1) · ±grid
  Half d;
  Byte qs[64];
  Byte qh[8];
  Byte signs[32];  // bit i % 8 of byte i / 8: negative
  Byte scales[4];  // one nibble for each 32 elements
};
// Vector j of 8 elements: grid index of 11 bits, the low 8 in qs[j], the high 3 at bits 3·(j % 4) of word j /
// 4 of qh.
struct BlockIQ1_S {  // x = d · (2s + 1) · (grid ± 1/8)
  Half d;
  Byte qs[32];
  Byte qh[16];  // 8 words of 16 bits: index bits, scale s in bits 12 … 14, bit 15: minus 1/8
};
// Vector j of 8 elements: grid index of 11 bits, the low 8 in qs[j], the high 3 in bits 0 … 2 of nibble j of
// qh, whose bit 3 means minus 1/8. scales: 4 words of 16 bits, in each four scales s of 3 bits (one for each
// 16 elements); the words' top nibbles are d (f16), lowest first.
struct BlockIQ1_M {  // x = d · (2s + 1) · (grid ± 1/8)
  Byte qs[32];
  Byte qh[16];
  Byte scales[8];
};
struct BlockIQ4_NL {  // 32 elements, x = d · values[q]; nibbles as in Q4_0
  Half d;
  Byte qs[16];
};
struct BlockIQ4_XS {  // groups of 32: x = d · (s[g] − 32) · values[q]; nibbles in each group as in Q4_0
  Half d;
  Byte scales_h[2];  // high 2 bits of s[g] at bits 2g (16 bits, little-endian)
  Byte scales_l[4];  // low 4 bits of s[g]: nibble g
  Byte qs[128];
};

// --- Ternary: super-blocks of 256, x = d · (t − 1), t in 0 … 2 ---

// Five base-3 digits in a byte, read as the fraction f = byte / 256: digit n is floor(3 · frac(3^n · f)).
//   element 32·n + l         digit n of qs[l]         n < 5, l < 32
//   element 160 + 16·n + l   digit n of qs[32 + l]    n < 5, l < 16
//   element 240 + 4·n + l    digit n of qh[l]         n < 4, l < 4
struct BlockTQ1_0 {
  Byte qs[48];
  Byte qh[4];
  Half d;
};
struct BlockTQ2_0 {
  Byte qs[64];  // 2-bit planes
  Half d;
};

// --- 4-bit floats (E2M1). values[] holds twice the float, so scales are halved. ---

struct BlockMXFP4 {  // 32 elements, x = 2^(e − 128) · values[q]; nibbles as in Q4_0
  Byte e;
  Byte qs[16];
};
struct BlockNVFP4 {  // 64 elements in groups of 16: x = (UE4M3 d[g]) / 2 · values[q]
  Byte d[4];
  Byte qs[32];  // group g: byte 8·g + l holds its element l in the low nibble, l + 8 in the high one
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockQ1_0) == 18);
static_assert(sizeof(BlockQ2_0) == 18 && sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110);
static_assert(sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);
static_assert(sizeof(BlockIQ2_XXS) == 66 && sizeof(BlockIQ2_XS) == 74 && sizeof(BlockIQ2_S) == 82);
static_assert(sizeof(BlockIQ3_XXS) == 98 && sizeof(BlockIQ3_S) == 110 && sizeof(BlockIQ1_S) == 50);
static_assert(sizeof(BlockIQ1_M) == 56 && sizeof(BlockIQ4_NL) == 18 && sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockTQ1_0) == 54 && sizeof(BlockTQ2_0) == 66 && sizeof(BlockMXFP4) == 17);
static_assert(sizeof(BlockNVFP4) == 36 && alignof(BlockQ4_K) == 1 && alignof(BlockIQ4_XS) == 1);

}  // namespace sluice::formats
