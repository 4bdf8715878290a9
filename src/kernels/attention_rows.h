// Several rows against one tile of attention, one after the other: for tables that have no better way, and
// where rows are too few for one. Any thread.
#pragma once

#include "kernels/kernels.h"

namespace sluice::kernels {

void AttendRowByRow(AttentionTileFn attend, const AttentionRowsArgs& args);

}  // namespace sluice::kernels
