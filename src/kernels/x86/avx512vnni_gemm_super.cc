// Batches against the super-block formats on AVX-512 VNNI: those with readers of their own, and all others through
// their definition (formats/unpack.h).
#include "formats/unpack.h"
#include "kernels/x86/avx512vnni.h"
#include "kernels/x86/avx512vnni_gemm.h"
#include "kernels/x86/superblocks.h"

namespace sluice::kernels::avx512vnni {
namespace {

// What a block gives besides its codes, one row.
struct BlockScales {
  __m512i scales;  // of 16 groups; of 8 groups and then 8 minimums where groups have 32 elements
  __m512i mins;    // of 16 groups
  float d;
  float dmin;
};

template <class Format, int j = 0>
inline void StoreCodes(const std::byte* block, uint8_t* codes) {
  if constexpr (j < 8) {
    __m256i part = Format::template Codes<Avx512Vnni, j>(block);
    if constexpr (Format::kSigned) part = _mm256_xor_si256(part, _mm256_set1_epi8(-128));
    Store256(codes + 32 * j, part);
    StoreCodes<Format, j + 1>(block, codes);
  }
}

// Readers: kBytes of a block, kGroups (8 or 16), kOffset of the unsigned codes, kHasMin, and Read.
template <class Format, int kFloats>
struct Reader16 {
  static constexpr size_t bytes() { return Format::kBytes; }
  static constexpr int kGroups = 16;
  static constexpr int kOffset = Format::kOffset;
  static constexpr bool kHasMin = Format::kHasMin;
  inline void Read(const std::byte* block, uint8_t* codes, BlockScales& out) const {
    StoreCodes<Format>(block, codes);
    out.scales = InOrder(Format::RowScales(block));
    out.d = LoadHalf(block + kFloats);
    if constexpr (kHasMin) {
      out.mins = InOrder(Format::RowMinimums(block));
      out.dmin = LoadHalf(block + kFloats + 2);
    }
  }

 private:
  // The even groups, then the odd ones, as int16 → 16 int32 in order.
  static inline __m512i InOrder(__m256i even_odd) {
    const __m512i order = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    return _mm512_permutexvar_epi32(order, _mm512_cvtepi16_epi32(even_odd));
  }
};

template <class Format>
struct ReaderQ45 {
  static constexpr size_t bytes() { return Format::kBytes; }
  static constexpr int kGroups = 8;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true;
  inline void Read(const std::byte* block, uint8_t* codes, BlockScales& out) const {
    StoreCodes<Format>(block, codes);
    const uint32_t w0 = LoadU32(block + 4), w1 = LoadU32(block + 8), w2 = LoadU32(block + 12);
    const uint32_t scale_high = (w2 & 0x0f0f0f0fu) | ((w0 >> 2) & 0x30303030u);
    const uint32_t min_high = ((w2 >> 4) & 0x0f0f0f0fu) | ((w1 >> 2) & 0x30303030u);
    const __m128i packed =
        _mm_setr_epi32(static_cast<int>(w0 & 0x3f3f3f3fu), static_cast<int>(scale_high),
                       static_cast<int>(w1 & 0x3f3f3f3fu), static_cast<int>(min_high));
    out.scales = _mm512_cvtepu8_epi32(packed);
    out.d = LoadHalf(block);
    out.dmin = LoadHalf(block + 2);
  }
};

struct ReaderIQ4_XS {
  static constexpr size_t bytes() { return SuperIQ4_XS::kBytes; }
  static constexpr int kGroups = 8;
  static constexpr int kOffset = 128;
  static constexpr bool kHasMin = false;
  inline void Read(const std::byte* block, uint8_t* codes, BlockScales& out) const {
    StoreCodes<SuperIQ4_XS>(block, codes);
    const __m256i low = _mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int>(LoadU32(block + 4))),
                                          _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i high = _mm256_srlv_epi32(_mm256_set1_epi32(LoadU16(block + 2)),
                                           _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    const __m256i six = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
                                        _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4));
    out.scales = _mm512_castsi256_si512(_mm256_sub_epi32(six, _mm256_set1_epi32(32)));
    out.d = LoadHalf(block);
  }
};

struct DefinitionReader {
  formats::UnpackFn unpack;
  size_t block_bytes;

  inline size_t bytes() const { return block_bytes; }
  static constexpr int kGroups = 16;
  static constexpr int kOffset = 128;
  static constexpr bool kHasMin = false;
  inline void Read(const std::byte* block, uint8_t* codes, BlockScales& out) const {
    formats::UnpackedBlock unpacked;
    unpack(block, unpacked);
    for (int i = 0; i < 256; i += 32) {
      Store256(codes + i, _mm256_xor_si256(Load256(unpacked.codes + i), _mm256_set1_epi8(-128)));
    }
    out.scales = _mm512_loadu_si512(unpacked.scales);
    out.d = unpacked.d;
  }
};

template <class Reader>
struct SuperFamily {
  static constexpr int kChains = 1;
  static constexpr int kGroups = Reader::kGroups;
  static constexpr int kGroupLength = 256 / kGroups;

  Reader reader;

  inline void Unpack(const PanelScratch& scratch, const PanelRows& rows, int64_t first, int n) const {
    const size_t start = static_cast<size_t>(first / 256) * reader.bytes();
    for (int k = 0; k < n / 256; ++k) {
      for (int half = 0; half < kPanelRows; half += 16) {
        __m512i scales[16], mins[16], columns[16];
        for (int r = 0; r < 16; ++r) {
          BlockScales block;
          reader.Read(rows.row[half + r] + start + static_cast<size_t>(k) * reader.bytes(), scratch.linear + r * 256,
                      block);
          scales[r] = block.scales;
          scratch.d[k * kPanelRows + half + r] = block.d;
          if constexpr (Reader::kHasMin) {
            mins[r] = block.mins;
            scratch.dmin[k * kPanelRows + half + r] = block.dmin;
          }
        }
        TransposeCodes(scratch.linear, half, scratch.codes + static_cast<size_t>(k) * 256 * kPanelRows);
        Transpose16(scales, columns);
        int32_t* const to = scratch.scales + static_cast<size_t>(k) * 16 * kPanelRows + half;
        for (int g = 0; g < kGroups; ++g) _mm512_storeu_si512(to + g * kPanelRows, columns[g]);
        if constexpr (Reader::kHasMin) {
          if constexpr (kGroups == 16) Transpose16(mins, columns);
          StorePairs(columns + (kGroups == 8 ? 8 : 0), scratch.mins + static_cast<size_t>(k) * 8 * kPanelRows + half);
        }
      }
    }
  }

  template <int C>
  inline void Tile(const PanelScratch& scratch, const ActivationRows& x, int64_t b, int64_t first, int n,
                   float* sums) const {
    const int blocks = n / 256;
    const int64_t x_blocks = x.columns / 256;
    const int8_t* q = x.q + b * x.columns + first;
    const float* scale = x.scale + b * x_blocks + first / 256;
    const int16_t* xsums = x.sums + b * (x.columns / 16) + first / 16;
    for (int k = 0; k < blocks; ++k) {
      __m512i isum[C][2];
      for (int c = 0; c < C; ++c) isum[c][0] = isum[c][1] = _mm512_setzero_si512();
      const int32_t* group_scales = scratch.scales + static_cast<size_t>(k) * 16 * kPanelRows;
      for (int g = 0; g < kGroups; ++g) {
        __m512i p[C][2];
        for (int c = 0; c < C; ++c) {
          p[c][0] = p[c][1] = Excess(xsums + c * (x.columns / 16) + k * 16 + g * (16 / kGroups));
        }
        AddSteps<C>(scratch.codes + static_cast<size_t>(k * 256 + g * kGroupLength) * kPanelRows,
                    q + k * 256 + g * kGroupLength, x.columns, kGroupLength / 4, p);
        for (int h = 0; h < 2; ++h) {
          const __m512i s = _mm512_loadu_si512(group_scales + g * kPanelRows + h * 16);
          for (int c = 0; c < C; ++c) isum[c][h] = _mm512_add_epi32(isum[c][h], _mm512_mullo_epi32(p[c][h], s));
        }
      }
      for (int c = 0; c < C; ++c) {
        const __m512 dx = _mm512_set1_ps(scale[c * x_blocks + k]);
        for (int h = 0; h < 2; ++h) {
          float* const sum = sums + c * kPanelRows + h * 16;
          const __m512 d = _mm512_loadu_ps(scratch.d + k * kPanelRows + h * 16);
          __m512 acc = _mm512_loadu_ps(sum);
          acc = _mm512_fmadd_ps(_mm512_mul_ps(d, dx), _mm512_cvtepi32_ps(isum[c][h]), acc);
          if constexpr (Reader::kHasMin) {
            const int32_t* mins = scratch.mins + static_cast<size_t>(k) * 8 * kPanelRows + h * 16;
            const __m512 msum = _mm512_cvtepi32_ps(MinSum(mins, xsums + c * (x.columns / 16) + k * 16));
            const __m512 dmin = _mm512_loadu_ps(scratch.dmin + k * kPanelRows + h * 16);
            acc = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, dx), msum, acc);
          }
          _mm512_storeu_ps(sum, acc);
        }
      }
    }
  }

  inline void Finish(const float* sums, __m512 y[2]) const {
    y[0] = _mm512_loadu_ps(sums);
    y[1] = _mm512_loadu_ps(sums + 16);
  }

 private:
  // −offset · Σ q of a group.
  static inline __m512i Excess(const int16_t* xsums) {
    if constexpr (Reader::kOffset == 0) return _mm512_setzero_si512();
    const int sum = kGroups == 16 ? xsums[0] : xsums[0] + xsums[1];
    return _mm512_set1_epi32(-Reader::kOffset * sum);
  }

  // Minimums of kGroups groups → pairs of int16: of groups (2i, 2i + 1), for 32-element groups (i, i) twice.
  static inline void StorePairs(const __m512i* mins, int32_t* to) {
    for (int i = 0; i < 8; ++i) {
      const __m512i low = mins[kGroups == 16 ? 2 * i : i];
      const __m512i high = mins[kGroups == 16 ? 2 * i + 1 : i];
      _mm512_storeu_si512(to + i * kPanelRows, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
  }

  static inline __m512i MinSum(const int32_t* mins, const int16_t* xsums) {
    __m512i acc = _mm512_setzero_si512();
    for (int i = 0; i < 8; ++i) {
      int32_t pair;
      std::memcpy(&pair, xsums + 2 * i, sizeof(pair));
      acc = _mm512_dpwssd_epi32(acc, _mm512_loadu_si512(mins + i * kPanelRows), _mm512_set1_epi32(pair));
    }
    return acc;
  }
};

template <class Reader>
inline void MatmulSuper(const MatmulArgs& args) {
  MatmulBatch(args, SuperFamily<Reader>{});
}

inline void MatmulDefinition(const MatmulArgs& args, formats::DType dtype) {
  const DefinitionReader reader{formats::UnpackerFor(dtype), formats::Traits(dtype).block_bytes};
  MatmulBatch(args, SuperFamily<DefinitionReader>{reader});
}

}  // namespace

void BatchQ2_K(const MatmulArgs& args) { MatmulSuper<Reader16<SuperQ2_K, 80>>(args); }
void BatchQ3_K(const MatmulArgs& args) { MatmulSuper<Reader16<SuperQ3_K, 108>>(args); }
void BatchQ4_K(const MatmulArgs& args) { MatmulSuper<ReaderQ45<SuperQ4_K>>(args); }
void BatchQ5_K(const MatmulArgs& args) { MatmulSuper<ReaderQ45<SuperQ5_K>>(args); }
void BatchQ6_K(const MatmulArgs& args) { MatmulSuper<Reader16<SuperQ6_K, 208>>(args); }
void BatchIQ4_XS(const MatmulArgs& args) { MatmulSuper<ReaderIQ4_XS>(args); }

void MatmulIQ2_XXS(const MatmulArgs& args) { MatmulDefinition(args, formats::DType::kIQ2_XXS); }
void MatmulIQ2_XS(const MatmulArgs& args) { MatmulDefinition(args, formats::DType::kIQ2_XS); }
void MatmulIQ2_S(const MatmulArgs& args) { MatmulDefinition(args, formats::DType::kIQ2_S); }
void MatmulIQ3_XXS(const MatmulArgs& args) { MatmulDefinition(args, formats::DType::kIQ3_XXS); }
void MatmulIQ3_S(const MatmulArgs& args) { MatmulDefinition(args, formats::DType::kIQ3_S); }
void MatmulIQ1_S(const MatmulArgs& args) { MatmulDefinition(args, formats::DType::kIQ1_S); }
void MatmulIQ1_M(const MatmulArgs& args) { MatmulDefinition(args, formats::DType::kIQ1_M); }
void MatmulTQ1_0(const MatmulArgs& args) { MatmulDefinition(args, formats::DType::kTQ1_0); }
void MatmulTQ2_0(const MatmulArgs& args) { MatmulDefinition(args, formats::DType::kTQ2_0); }

}  // namespace sluice::kernels::avx512vnni
