// Matrix products on AVX-512 VNNI with batches of activation rows.
#include "kernels/x86/avx512vnni.h"
#include "kernels/x86/batch_avx512vnni.h"
#include "kernels/x86/batch_blocks.h"
#include "kernels/x86/batch_floats.h"
#include "kernels/x86/batch_nvfp4.h"
#include "kernels/x86/batch_plain.h"
#include "kernels/x86/batch_super.h"
#include "kernels/x86/grids.h"
#include "kernels/x86/ternary.h"

namespace sluice::kernels::avx512vnni {

void MeasureReach(const int8_t* q, int64_t columns, Reach* reach) {
  const __m512i zero = _mm512_setzero_si512();
  // Of a lane of 64 bits, its neighbour in 16 elements; of a run of 16, that in 32.
  const auto add_neighbours = [](__m512i v) {
    return _mm512_add_epi32(v, _mm512_shuffle_epi32(v, _MM_PERM_BADC));
  };
  const auto add_runs = [](__m512i v) { return _mm512_add_epi32(v, _mm512_shuffle_i64x2(v, v, 0xb1)); };
  for (int64_t k = 0; k < columns / 256; ++k) {
    __m512i most_of_16 = zero, most_of_32 = zero;
    for (int i = 0; i < 256; i += 64) {
      const __m512i v = _mm512_loadu_si512(q + k * 256 + i);
      const __m512i of_16 = add_neighbours(_mm512_sad_epu8(_mm512_abs_epi8(v), zero));
      // Bytes raised by 128, which are summed without a sign.
      const __m512i raised = _mm512_sad_epu8(_mm512_xor_si512(v, _mm512_set1_epi8(-128)), zero);
      const __m512i sum =
          _mm512_sub_epi32(add_runs(add_neighbours(raised)), _mm512_set1_epi64(int64_t{32} * 128));
      // The larger of the sums of either sign.
      const __m512i twice = _mm512_add_epi32(add_runs(of_16), _mm512_abs_epi32(sum));
      most_of_16 = _mm512_max_epi32(most_of_16, of_16);
      most_of_32 = _mm512_max_epi32(most_of_32, _mm512_srli_epi32(twice, 1));
    }
    reach[k] = {static_cast<int16_t>(_mm512_reduce_max_epi32(most_of_16)),
                static_cast<int16_t>(_mm512_reduce_max_epi32(most_of_32))};
  }
}

void BatchF32(const MatmulArgs& args) { MatmulFloatBatch<BatchAvx512Vnni, WeightF32, 4>(args); }
void BatchF16(const MatmulArgs& args) { MatmulFloatBatch<BatchAvx512Vnni, WeightF16, 4>(args); }
void BatchBf16(const MatmulArgs& args) { MatmulFloatBatch<BatchAvx512Vnni, WeightBf16, 4>(args); }

void BatchQ4_0(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx512Vnni, BlockQ4_0Format>(args); }
void BatchQ4_1(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx512Vnni, BlockQ4_1Format>(args); }
void BatchQ5_0(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx512Vnni, BlockQ5_0Format>(args); }
void BatchQ5_1(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx512Vnni, BlockQ5_1Format>(args); }
void BatchQ8_0(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx512Vnni, BlockQ8_0Format>(args); }
void BatchIQ4_NL(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx512Vnni, BlockIQ4_NLFormat>(args); }
void BatchMXFP4(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx512Vnni, BlockMXFP4Format>(args); }

void BatchQ2_K(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperQ2_K>>(args);
}
void BatchQ3_K(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperQ3_K>>(args);
}
void BatchQ6_K(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperQ6_K>>(args);
}
void BatchQ4_K(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, ReaderQ45<Avx512Vnni, SuperQ4_K>>(args);
}
void BatchQ5_K(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, ReaderQ45<Avx512Vnni, SuperQ5_K>>(args);
}
void BatchIQ4_XS(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, ReaderIQ4_XS<Avx512Vnni>>(args);
}

void BatchIQ2_XXS(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperIQ2_XXS>>(args);
}
void BatchIQ2_XS(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperIQ2_XS>>(args);
}
void BatchIQ2_S(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperIQ2_S>>(args);
}
void BatchIQ3_XXS(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperIQ3_XXS>>(args);
}
void BatchIQ3_S(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperIQ3_S>>(args);
}
void BatchIQ1_S(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperIQ1_S>>(args);
}
void BatchIQ1_M(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperIQ1_M>>(args);
}
void BatchTQ1_0(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperTQ1_0>>(args);
}
void BatchTQ2_0(const MatmulArgs& args) {
  MatmulSuperBatch<BatchAvx512Vnni, Reader16<Avx512Vnni, SuperTQ2_0>>(args);
}

void BatchNVFP4(const MatmulArgs& args) { MatmulNvfp4Batch<BatchAvx512Vnni>(args); }
void BatchQ2_0(const MatmulArgs& args) { MatmulPlainBatch<BatchAvx512Vnni, PlainQ2_0>(args); }
void BatchQ1_0(const MatmulArgs& args) { MatmulPlainBatch<BatchAvx512Vnni, PlainQ1_0>(args); }

}  // namespace sluice::kernels::avx512vnni
