#include "kernels/x86/attention_tile.h"
#include "kernels/x86/avx2.h"
#include "kernels/x86/isa_avx2.h"

namespace sluice::kernels::avx2 {

void AttentionTileF32(const AttentionTileArgs& args) { AttentionTile<Avx2, WeightF32>(args); }
void AttentionTileF16(const AttentionTileArgs& args) { AttentionTile<Avx2, WeightF16>(args); }

}  // namespace sluice::kernels::avx2
