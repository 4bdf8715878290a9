// Matrix products on AVX-512 VNNI: single rows and small batches.
#include "kernels/x86/avx512vnni.h"
#include "kernels/x86/blocks32.h"
#include "kernels/x86/float_products.h"
#include "kernels/x86/isa_avx512vnni.h"
#include "kernels/x86/panels.h"

namespace sluice::kernels::avx512vnni {

void MatmulF32(const MatmulArgs& args) { MatmulFloats<Avx512Vnni, WeightF32, 8, 4, 5>(args); }
void MatmulF16(const MatmulArgs& args) { MatmulFloats<Avx512Vnni, WeightF16, 8, 4, 5>(args); }
void MatmulBf16(const MatmulArgs& args) { MatmulFloats<Avx512Vnni, WeightBf16, 8, 4, 5>(args); }

void MatmulQ4_0(const MatmulArgs& args) { MatmulRows32<Avx512Vnni, BlockQ4_0Format>(args); }
void MatmulQ4_1(const MatmulArgs& args) { MatmulRows32<Avx512Vnni, BlockQ4_1Format>(args); }
void MatmulQ5_0(const MatmulArgs& args) { MatmulRows32<Avx512Vnni, BlockQ5_0Format>(args); }
void MatmulQ5_1(const MatmulArgs& args) { MatmulRows32<Avx512Vnni, BlockQ5_1Format>(args); }
void MatmulQ8_0(const MatmulArgs& args) { MatmulRows32<Avx512Vnni, BlockQ8_0Format>(args); }
void MatmulIQ4_NL(const MatmulArgs& args) { MatmulRows32<Avx512Vnni, BlockIQ4_NLFormat>(args); }
void MatmulMXFP4(const MatmulArgs& args) { MatmulRows32<Avx512Vnni, BlockMXFP4Format>(args); }

void MatmulQ2_K(const MatmulArgs& args) { MatmulPanels<Avx512Vnni, SuperQ2_K, Header16>(args); }
void MatmulQ3_K(const MatmulArgs& args) { MatmulPanels<Avx512Vnni, SuperQ3_K, Header16>(args); }
void MatmulQ4_K(const MatmulArgs& args) { MatmulPanels<Avx512Vnni, SuperQ4_K, HeaderQ45>(args); }
void MatmulQ5_K(const MatmulArgs& args) { MatmulPanels<Avx512Vnni, SuperQ5_K, HeaderQ45>(args); }
void MatmulQ6_K(const MatmulArgs& args) { MatmulPanels<Avx512Vnni, SuperQ6_K, Header16>(args); }
void MatmulIQ4_XS(const MatmulArgs& args) { MatmulPanels<Avx512Vnni, SuperIQ4_XS, HeaderIQ4_XS>(args); }

}  // namespace sluice::kernels::avx512vnni
