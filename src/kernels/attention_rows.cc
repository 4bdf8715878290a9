#include "kernels/attention_rows.h"

namespace sluice::kernels {

void AttendRowByRow(AttentionTileFn attend, const AttentionRowsArgs& args) {
  AttentionTileArgs row = args.tile;
  for (int r = 0; r < args.rows; ++r) {
    const VisibleSlots& visible = args.visible[r];
    if (visible.first < visible.last) {
      row.first = visible.first;
      row.last = visible.last;
      row.first_distance = visible.first_distance;
      attend(row);
    }
    row.q += args.q_row_stride;
    row.m += row.heads;
    row.l += row.heads;
    row.o += static_cast<int64_t>(row.heads) * row.v_dim;
  }
}

}  // namespace sluice::kernels
