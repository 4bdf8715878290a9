#include "kernels/x86/attention_tile.h"
#include "kernels/x86/avx2.h"
#include "kernels/x86/isa_avx2.h"

namespace sluice::kernels::avx2 {

void AttentionTile(const AttentionTileArgs& args) { AttendTile<Avx2>(args); }
void AttentionScores(const AttentionTileArgs& args) { ScoreTile<Avx2>(args); }

}  // namespace sluice::kernels::avx2
