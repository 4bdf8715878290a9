#include "kernels/x86/attention_tile.h"
#include "kernels/x86/avx512vnni.h"
#include "kernels/x86/isa_avx512vnni.h"

namespace sluice::kernels::avx512vnni {

void AttentionTileF32(const AttentionTileArgs& args) { AttentionTile<Avx512Vnni, WeightF32>(args); }
void AttentionTileF16(const AttentionTileArgs& args) { AttentionTile<Avx512Vnni, WeightF16>(args); }

}  // namespace sluice::kernels::avx512vnni
