#include "kernels/attention_rows.h"

#include <algorithm>

#include "kernels/lanes.h"

namespace sluice::kernels {

namespace {

// Runs of `lanes` for n.
int WholeRuns(int n, int lanes) { return (n + lanes - 1) / lanes; }

}  // namespace

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

bool IsWorthSharing(const AttentionRowsArgs& args, int lanes) {
  const int queries = args.rows * args.tile.heads;
  const bool fills_lanes = 4 * queries >= 3 * lanes * WholeRuns(queries, lanes);
  return args.rows > 1 && fills_lanes && (2 * args.tile.heads < lanes || queries >= 2 * lanes);
}

VisibleSlots SeenByAny(const AttentionRowsArgs& args, int first, int last) {
  VisibleSlots seen{kTileSlots, 0, 0};
  for (int r = first; r < last; ++r) {
    const VisibleSlots& visible = args.visible[r];
    if (visible.first >= visible.last) continue;
    seen.first = std::min(seen.first, visible.first);
    seen.last = std::max(seen.last, visible.last);
  }
  return seen;
}

SharedTile::SharedTile(const AttentionRowsArgs& args)
    : k_runs(WholeRuns(args.tile.k_dim, kLanes)),
      v_runs(WholeRuns(args.tile.v_dim, kLanes)),
      k(args.scratch),
      v(k + kTileSlots * k_runs * kLanes),
      q(v + kTileSlots * v_runs * kLanes) {}

void PackQueries(const AttentionRowsArgs& args, int lanes, const SharedTile& tile) {
  const int queries = args.rows * args.tile.heads, columns = tile.k_runs * kLanes;
  for (int lane = 0; lane < WholeRuns(queries, lanes) * lanes; ++lane) {
    const int query = std::min(lane, queries - 1);
    const float* const from = args.tile.q + query / args.tile.heads * args.q_row_stride +
                              query % args.tile.heads * args.tile.q_stride;
    float* const to = tile.q + static_cast<int64_t>(lane / lanes * lanes) * columns + lane % lanes;
    for (int j = 0; j < columns; ++j) to[j * lanes] = j < args.tile.k_dim ? from[j] : 0.0f;
  }
}

}  // namespace sluice::kernels
