// Matrix products on AVX2 with batches of activation rows.
#include "kernels/x86/avx2.h"
#include "kernels/x86/batch_avx2.h"
#include "kernels/x86/batch_blocks.h"
#include "kernels/x86/batch_floats.h"
#include "kernels/x86/batch_nvfp4.h"
#include "kernels/x86/batch_plain.h"
#include "kernels/x86/batch_super.h"
#include "kernels/x86/grids.h"
#include "kernels/x86/ternary.h"

namespace sluice::kernels::avx2 {

void BatchF32(const MatmulArgs& args) { MatmulFloatBatch<BatchAvx2, WeightF32, 2>(args); }
void BatchF16(const MatmulArgs& args) { MatmulFloatBatch<BatchAvx2, WeightF16, 2>(args); }
void BatchBf16(const MatmulArgs& args) { MatmulFloatBatch<BatchAvx2, WeightBf16, 2>(args); }

void BatchQ4_0(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockQ4_0Format>(args); }
void BatchQ4_1(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockQ4_1Format>(args); }
void BatchQ5_0(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockQ5_0Format>(args); }
void BatchQ5_1(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockQ5_1Format>(args); }
void BatchQ8_0(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockQ8_0Format>(args); }
void BatchIQ4_NL(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockIQ4_NLFormat>(args); }
void BatchMXFP4(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockMXFP4Format>(args); }

void BatchQ2_K(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperQ2_K>>(args); }
void BatchQ3_K(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperQ3_K>>(args); }
void BatchQ6_K(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperQ6_K>>(args); }
void BatchQ4_K(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, ReaderQ45<Avx2, SuperQ4_K>>(args); }
void BatchQ5_K(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, ReaderQ45<Avx2, SuperQ5_K>>(args); }
void BatchIQ4_XS(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, ReaderIQ4_XS<Avx2>>(args); }

void BatchIQ2_XXS(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperIQ2_XXS>>(args); }
void BatchIQ2_XS(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperIQ2_XS>>(args); }
void BatchIQ2_S(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperIQ2_S>>(args); }
void BatchIQ3_XXS(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperIQ3_XXS>>(args); }
void BatchIQ3_S(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperIQ3_S>>(args); }
void BatchIQ1_S(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperIQ1_S>>(args); }
void BatchIQ1_M(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperIQ1_M>>(args); }
void BatchTQ1_0(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperTQ1_0>>(args); }
void BatchTQ2_0(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperTQ2_0>>(args); }

void BatchNVFP4(const MatmulArgs& args) { MatmulNvfp4Batch<BatchAvx2>(args); }
void BatchQ2_0(const MatmulArgs& args) { MatmulPlainBatch<BatchAvx2, PlainQ2_0>(args); }
void BatchQ1_0(const MatmulArgs& args) { MatmulPlainBatch<BatchAvx2, PlainQ1_0>(args); }

}  // namespace sluice::kernels::avx2
