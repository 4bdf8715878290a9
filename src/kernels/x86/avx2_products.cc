// Matrix products on AVX2: single rows and small batches.
#include "kernels/x86/avx2.h"
#include "kernels/x86/blocks32.h"
#include "kernels/x86/by_batch.h"
#include "kernels/x86/float_products.h"
#include "kernels/x86/grids.h"
#include "kernels/x86/isa_avx2.h"
#include "kernels/x86/nvfp4.h"
#include "kernels/x86/panels.h"
#include "kernels/x86/plain_blocks.h"
#include "kernels/x86/ternary.h"

namespace sluice::kernels::avx2 {

void MatmulF32(const MatmulArgs& args) {
  ByBatch<kFloatBatch>(args, MatmulFloats<Avx2, WeightF32, 4, 2, 3>, BatchF32);
}
void MatmulF16(const MatmulArgs& args) {
  ByBatch<kFloatBatch>(args, MatmulFloats<Avx2, WeightF16, 4, 2, 3>, BatchF16);
}
void MatmulBf16(const MatmulArgs& args) {
  ByBatch<kFloatBatch>(args, MatmulFloats<Avx2, WeightBf16, 4, 2, 3>, BatchBf16);
}

void MatmulQ4_0(const MatmulArgs& args) { ByBatch(args, MatmulRows32<Avx2, BlockQ4_0Format>, BatchQ4_0); }
void MatmulQ4_1(const MatmulArgs& args) { ByBatch(args, MatmulRows32<Avx2, BlockQ4_1Format>, BatchQ4_1); }
void MatmulQ5_0(const MatmulArgs& args) { ByBatch(args, MatmulRows32<Avx2, BlockQ5_0Format>, BatchQ5_0); }
void MatmulQ5_1(const MatmulArgs& args) { ByBatch(args, MatmulRows32<Avx2, BlockQ5_1Format>, BatchQ5_1); }
void MatmulQ8_0(const MatmulArgs& args) { ByBatch(args, MatmulRows32<Avx2, BlockQ8_0Format>, BatchQ8_0); }
void MatmulIQ4_NL(const MatmulArgs& args) {
  ByBatch(args, MatmulRows32<Avx2, BlockIQ4_NLFormat>, BatchIQ4_NL);
}
void MatmulMXFP4(const MatmulArgs& args) { ByBatch(args, MatmulRows32<Avx2, BlockMXFP4Format>, BatchMXFP4); }

void MatmulQ2_K(const MatmulArgs& args) { ByBatch(args, MatmulPanels<Avx2, SuperQ2_K, Header16>, BatchQ2_K); }
void MatmulQ3_K(const MatmulArgs& args) { ByBatch(args, MatmulPanels<Avx2, SuperQ3_K, Header16>, BatchQ3_K); }
void MatmulQ4_K(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperQ4_K, HeaderQ45>, BatchQ4_K);
}
void MatmulQ5_K(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperQ5_K, HeaderQ45>, BatchQ5_K);
}
void MatmulQ6_K(const MatmulArgs& args) { ByBatch(args, MatmulPanels<Avx2, SuperQ6_K, Header16>, BatchQ6_K); }
void MatmulIQ4_XS(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperIQ4_XS, HeaderIQ4_XS>, BatchIQ4_XS);
}

void MatmulIQ2_XXS(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperIQ2_XXS, Header16>, BatchIQ2_XXS);
}
void MatmulIQ2_XS(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperIQ2_XS, Header16>, BatchIQ2_XS);
}
void MatmulIQ2_S(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperIQ2_S, Header16>, BatchIQ2_S);
}
void MatmulIQ3_XXS(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperIQ3_XXS, Header16>, BatchIQ3_XXS);
}
void MatmulIQ3_S(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperIQ3_S, Header16>, BatchIQ3_S);
}
void MatmulIQ1_S(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperIQ1_S, Header16>, BatchIQ1_S);
}
void MatmulIQ1_M(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperIQ1_M, Header16>, BatchIQ1_M);
}
void MatmulTQ1_0(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperTQ1_0, Header16>, BatchTQ1_0);
}
void MatmulTQ2_0(const MatmulArgs& args) {
  ByBatch(args, MatmulPanels<Avx2, SuperTQ2_0, Header16>, BatchTQ2_0);
}

void MatmulNVFP4(const MatmulArgs& args) { ByBatch(args, MatmulNvfp4<Avx2>, BatchNVFP4); }
void MatmulQ2_0(const MatmulArgs& args) { ByBatch(args, MatmulPlainPanels<Avx2, PlainQ2_0>, BatchQ2_0); }
void MatmulQ1_0(const MatmulArgs& args) { ByBatch(args, MatmulPlainPanels<Avx2, PlainQ1_0>, BatchQ1_0); }

}  // namespace sluice::kernels::avx2
