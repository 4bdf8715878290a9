// Matrix products on AVX2 with batches of activation rows, and with the formats that have no kernel of their
// own for single rows.
#include "kernels/x86/avx2.h"
#include "kernels/x86/batch_avx2.h"
#include "kernels/x86/batch_blocks.h"
#include "kernels/x86/batch_super.h"

namespace sluice::kernels::avx2 {

using formats::DType;

void BatchQ4_0(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockQ4_0Format>(args); }
void BatchQ4_1(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockQ4_1Format>(args); }
void BatchQ5_0(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockQ5_0Format>(args); }
void BatchQ5_1(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockQ5_1Format>(args); }
void BatchQ8_0(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockQ8_0Format>(args); }
void BatchIQ4_NL(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockIQ4_NLFormat>(args); }
void BatchMXFP4(const MatmulArgs& args) { MatmulBlockBatch<BatchAvx2, BlockMXFP4Format>(args); }

void BatchQ2_K(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperQ2_K, 80>>(args); }
void BatchQ3_K(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperQ3_K, 108>>(args); }
void BatchQ6_K(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, Reader16<Avx2, SuperQ6_K, 208>>(args); }
void BatchQ4_K(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, ReaderQ45<Avx2, SuperQ4_K>>(args); }
void BatchQ5_K(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, ReaderQ45<Avx2, SuperQ5_K>>(args); }
void BatchIQ4_XS(const MatmulArgs& args) { MatmulSuperBatch<BatchAvx2, ReaderIQ4_XS<Avx2>>(args); }

void MatmulIQ2_XXS(const MatmulArgs& args) { MatmulByDefinition<BatchAvx2>(args, DType::kIQ2_XXS); }
void MatmulIQ2_XS(const MatmulArgs& args) { MatmulByDefinition<BatchAvx2>(args, DType::kIQ2_XS); }
void MatmulIQ2_S(const MatmulArgs& args) { MatmulByDefinition<BatchAvx2>(args, DType::kIQ2_S); }
void MatmulIQ3_XXS(const MatmulArgs& args) { MatmulByDefinition<BatchAvx2>(args, DType::kIQ3_XXS); }
void MatmulIQ3_S(const MatmulArgs& args) { MatmulByDefinition<BatchAvx2>(args, DType::kIQ3_S); }
void MatmulIQ1_S(const MatmulArgs& args) { MatmulByDefinition<BatchAvx2>(args, DType::kIQ1_S); }
void MatmulIQ1_M(const MatmulArgs& args) { MatmulByDefinition<BatchAvx2>(args, DType::kIQ1_M); }
void MatmulTQ1_0(const MatmulArgs& args) { MatmulByDefinition<BatchAvx2>(args, DType::kTQ1_0); }
void MatmulTQ2_0(const MatmulArgs& args) { MatmulByDefinition<BatchAvx2>(args, DType::kTQ2_0); }

}  // namespace sluice::kernels::avx2
