// Matrix products on AVX2: single rows and small batches.
#include "kernels/x86/avx2.h"
#include "kernels/x86/blocks32.h"
#include "kernels/x86/float_products.h"
#include "kernels/x86/isa_avx2.h"
#include "kernels/x86/panels.h"

namespace sluice::kernels::avx2 {

void MatmulF32(const MatmulArgs& args) { MatmulFloats<Avx2, WeightF32, 4, 2, 3>(args); }
void MatmulF16(const MatmulArgs& args) { MatmulFloats<Avx2, WeightF16, 4, 2, 3>(args); }
void MatmulBf16(const MatmulArgs& args) { MatmulFloats<Avx2, WeightBf16, 4, 2, 3>(args); }

void MatmulQ4_0(const MatmulArgs& args) { MatmulRows32<Avx2, BlockQ4_0Format>(args); }
void MatmulQ4_1(const MatmulArgs& args) { MatmulRows32<Avx2, BlockQ4_1Format>(args); }
void MatmulQ5_0(const MatmulArgs& args) { MatmulRows32<Avx2, BlockQ5_0Format>(args); }
void MatmulQ5_1(const MatmulArgs& args) { MatmulRows32<Avx2, BlockQ5_1Format>(args); }
void MatmulQ8_0(const MatmulArgs& args) { MatmulRows32<Avx2, BlockQ8_0Format>(args); }
void MatmulIQ4_NL(const MatmulArgs& args) { MatmulRows32<Avx2, BlockIQ4_NLFormat>(args); }
void MatmulMXFP4(const MatmulArgs& args) { MatmulRows32<Avx2, BlockMXFP4Format>(args); }

void MatmulQ2_K(const MatmulArgs& args) { MatmulPanels<Avx2, SuperQ2_K, Header16>(args); }
void MatmulQ3_K(const MatmulArgs& args) { MatmulPanels<Avx2, SuperQ3_K, Header16>(args); }
void MatmulQ4_K(const MatmulArgs& args) { MatmulPanels<Avx2, SuperQ4_K, HeaderQ45>(args); }
void MatmulQ5_K(const MatmulArgs& args) { MatmulPanels<Avx2, SuperQ5_K, HeaderQ45>(args); }
void MatmulQ6_K(const MatmulArgs& args) { MatmulPanels<Avx2, SuperQ6_K, Header16>(args); }
void MatmulIQ4_XS(const MatmulArgs& args) { MatmulPanels<Avx2, SuperIQ4_XS, HeaderIQ4_XS>(args); }

}  // namespace sluice::kernels::avx2
