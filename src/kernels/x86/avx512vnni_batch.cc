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
