// Charts as SVG: panels one above the other over one axis of time, with legends, readable on light and on
// dark pages.
//
// Pure functions over plain values; any thread. Labels may be any text: they are escaped.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace_series.h"

namespace sluice::app {

struct ChartLine {
  std::string label;     // empty: not in the legend
  const Series* points;  // outlives the drawing
  int color = 0;         // 0: that of text; 1 … kChartColors
  bool dashed = false;
  bool steps = false;  // a value holds until the next point
};
inline constexpr int kChartColors = 9;

struct ChartPanel {
  std::string title;               // "Memory, GiB"
  double unit = 1;                 // a value's size in the title's unit
  std::vector<ChartLine> stacked;  // areas, the first at the bottom
  std::vector<ChartLine> lines;    // over them
  bool from_zero = true;           // the axis begins at 0
};

// `seconds`: how long the axis of time is. Panels without a point are left out.
std::string DrawCharts(std::string_view title, std::span<const ChartPanel> panels, double seconds);

}  // namespace sluice::app
