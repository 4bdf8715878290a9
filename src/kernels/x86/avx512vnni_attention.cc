#include "kernels/x86/attention_tile.h"
#include "kernels/x86/avx512vnni.h"
#include "kernels/x86/isa_avx512vnni.h"

namespace sluice::kernels::avx512vnni {

void AttentionTile(const AttentionTileArgs& args) { AttendTile<Avx512Vnni>(args); }
void AttentionScores(const AttentionTileArgs& args) { ScoreTile<Avx512Vnni>(args); }

}  // namespace sluice::kernels::avx512vnni
