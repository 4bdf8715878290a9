// What the tables have in common of attention_rows (kernels.h): rows one after the other, for tables that
// have no better way and where rows are too few for one, and what surrounds rows that share a tile. Any
// thread.
#pragma once

#include "kernels/kernels.h"

namespace sluice::kernels {

// All rows, each by `attend`, the table's own for one.
void AttendRowByRow(AttentionTileFn attend, const AttentionRowsArgs& args);

// Whether rows should share the tile where so many queries, the lanes of registers, are worked on at once.
// Idle lanes cost as much as busy ones, and half as many heads of a row share what they read without this.
bool IsWorthSharing(const AttentionRowsArgs& args, int lanes);

// What any of rows first … last − 1 sees of the tile; an empty stretch where they see nothing.
VisibleSlots SeenByAny(const AttentionRowsArgs& args, int first, int last);

// A tile as floats and the queries that share it: how AttentionRowsArgs::scratch is divided. The order within
// each part is the table's own.
struct SharedTile {
  explicit SharedTile(const AttentionRowsArgs& args);

  const int k_runs, v_runs;  // of 16 columns each, the last one filled up with zeros
  float* const k;            // 64 slots of k_runs · 16 columns
  float* const v;            // 64 slots of v_runs · 16 columns
  float* const q;            // k_runs · 16 columns of each query, and of as many as fill the last lanes
};

// Queries, heads of one row after another's, to tile.q: [as many as there are lanes][k_runs · 16][query], the
// last query several times.
void PackQueries(const AttentionRowsArgs& args, int lanes, const SharedTile& tile);

}  // namespace sluice::kernels
