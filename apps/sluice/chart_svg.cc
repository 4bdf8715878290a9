#include "chart_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "glyphs.h"

namespace sluice::app {

namespace {

constexpr double kWidth = 960, kLeft = 64, kRight = 24, kPlotWidth = kWidth - kLeft - kRight;
constexpr double kPanelHeight = 200, kLegendRow = 20, kTitleHeight = 44, kPanelTop = 34, kAxisHeight = 44;
constexpr double kCharacterWidth = 6.7;  // of the legend's font, about

// The first list is for light pages, the second for dark ones: text first, then the series. Told apart also
// by people who see red and green alike.
constexpr std::string_view kLight[] = {"#1f2328", "#0969da", "#e16f24", "#1a7f37", "#8250df",
                                       "#bf8700", "#cf3f8f", "#1b7c83", "#7d5a3c", "#6e7781"};
constexpr std::string_view kDark[] = {"#e6edf3", "#58a6ff", "#f0883e", "#3fb950", "#bc8cff",
                                      "#e3b341", "#f778ba", "#39c5cf", "#c69c6d", "#9ea7b3"};
static_assert(std::size(kLight) == kChartColors + 1 && std::size(kDark) == kChartColors + 1);

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
      case '\t':
        out += ' ';
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Style() {
  const auto colors = [](std::span<const std::string_view> list, std::string_view page,
                         std::string_view grid) {
    std::string css = fmt::format(".page{{fill:{}}}.grid{{stroke:{}}}", page, grid);
    for (size_t i = 0; i < list.size(); ++i) {
      css += fmt::format(".l{0}{{stroke:{1}}}.a{0}{{fill:{1}}}", i, list[i]);
    }
    return css + fmt::format("text{{fill:{}}}", list[0]);
  };
  return "<style>text{font:12px "
         "system-ui,sans-serif}.title{font-size:15px;font-weight:600}.panel{font-weight:600}"
         ".grid{stroke-width:1}.line{fill:none;stroke-width:1.75;stroke-linejoin:round}.dash{stroke-"
         "dasharray:6 4}"
         ".area{fill-opacity:.55}" +
         colors(kLight, "#ffffff", "#d8dee4") + "@media (prefers-color-scheme:dark){" +
         colors(kDark, "#0d1117", "#30363d") + "}</style>\n";
}

// Round numbers that cut [low, high] into a handful of parts.
struct Axis {
  double low = 0, high = 1, step = 1;

  static Axis Over(double low, double high, bool from_zero, int parts) {
    if (from_zero) low = 0;
    if (!(high > low)) high = low + 1;
    const double rough = (high - low) / parts;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= rough) {
        step = factor * power;
        break;
      }
    }
    return {std::floor(low / step) * step, std::ceil(high / step - 1e-9) * step, step};
  }
  int parts() const { return static_cast<int>(std::lround((high - low) / step)); }
  std::string Label(int part) const {
    const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
    return fmt::format("{:.{}f}", low + part * step, decimals);
  }
};

// At most four points for each column of pixels: its first, lowest, highest and last one.
Series Thinned(const Series& series, double seconds) {
  constexpr double kColumns = kPlotWidth;
  if (static_cast<double>(series.size()) <= 4 * kColumns) return series;
  const auto column = [&](const Point& point) { return std::floor(point.seconds / seconds * kColumns); };
  Series thin;
  for (size_t first = 0; first < series.size();) {
    size_t end = first + 1;
    while (end < series.size() && column(series[end]) == column(series[first])) ++end;
    const auto [low, high] = std::minmax_element(
        series.begin() + static_cast<ptrdiff_t>(first), series.begin() + static_cast<ptrdiff_t>(end),
        [](const Point& a, const Point& b) { return a.value < b.value; });
    std::array<Point, 4> kept{series[first], *low, *high, series[end - 1]};
    std::ranges::stable_sort(kept, {}, &Point::seconds);
    for (const Point& point : kept) {
      if (thin.empty() || thin.back().seconds != point.seconds || thin.back().value != point.value)
        thin.push_back(point);
    }
    first = end;
  }
  return thin;
}

class Drawing {
 public:
  explicit Drawing(double seconds)
      : seconds_(seconds > 0 ? seconds : 1), time_(Axis::Over(0, seconds_, true, 8)) {}

  void Title(std::string_view title) {
    Text(kLeft, 28, "title", "start", title);
    y_ = kTitleHeight;
  }

  void Panel(const ChartPanel& panel) {
    const double top = y_ + kPanelTop + (LegendRows(panel) - 1) * kLegendRow, bottom = top + kPanelHeight;
    const std::vector<Series> tops = Stack(panel.stacked);
    const Axis axis = AxisOf(panel, tops);
    Text(kLeft, y_ + 14, "panel", "start", panel.title);
    Legend(panel, y_ + 14);
    const auto y_of = [&](double value) {
      return bottom - (value / panel.unit - axis.low) / (axis.high - axis.low) * kPanelHeight;
    };
    for (size_t i = tops.size(); i-- > 0;)
      Area(tops[i], i == 0 ? nullptr : &tops[i - 1], panel.stacked[i].color, y_of, bottom);
    for (int part = 0; part <= axis.parts(); ++part) {
      const double y = bottom - part * kPanelHeight / axis.parts();
      out_ += fmt::format("<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>\n", kLeft,
                          y, kWidth - kRight, y);
      Text(kLeft - 8, y + 4, "", "end", axis.Label(part));
    }
    for (const ChartLine& line : panel.lines) Line(line, y_of);
    TimeAxis(bottom);
    y_ = bottom + kAxisHeight;
  }

  std::string Finish() const {
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1:.0f}\" width=\"{0}\" "
               "height=\"{1:.0f}\">\n",
               kWidth, y_) +
           Style() + fmt::format("<rect class=\"page\" width=\"{}\" height=\"{:.0f}\"/>\n", kWidth, y_) +
           out_ + "</svg>\n";
  }

 private:
  double X(double seconds) const { return kLeft + seconds / time_.high * kPlotWidth; }

  void Text(double x, double y, std::string_view style, std::string_view anchor, std::string_view text) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y,
                        style, anchor, Escaped(text));
  }

  // The upper edge of each area.
  static std::vector<Series> Stack(const std::vector<ChartLine>& areas) {
    std::vector<Series> tops;
    for (const ChartLine& area : areas) {
      Series top = *area.points;
      if (!tops.empty()) {
        for (size_t i = 0; i < std::min(top.size(), tops.back().size()); ++i)
          top[i].value += tops.back()[i].value;
      }
      tops.push_back(std::move(top));
    }
    return tops;
  }

  static Axis AxisOf(const ChartPanel& panel, const std::vector<Series>& tops) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    const auto cover = [&](const Series& series) {
      for (const Point& point : series) {
        low = std::min(low, point.value / panel.unit);
        high = std::max(high, point.value / panel.unit);
      }
    };
    for (const Series& top : tops) cover(top);
    for (const ChartLine& line : panel.lines) cover(*line.points);
    return Axis::Over(low, high, panel.from_zero, 5);
  }

  template <typename YOf>
  std::string Path(const Series& series, const YOf& y_of) const {
    std::string path;
    for (const Point& point : series)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", X(point.seconds), y_of(point.value));
    return path;
  }

  // Between a series and the one below it, or the bottom.
  template <typename YOf>
  void Area(const Series& top, const Series* below, int color, const YOf& y_of, double bottom) {
    const Series edge = Thinned(top, time_.high);
    if (edge.empty()) return;
    std::string path = Path(edge, y_of);
    if (below != nullptr && !below->empty()) {
      Series back = Thinned(*below, time_.high);
      std::ranges::reverse(back);
      for (const Point& point : back)
        path += fmt::format("L{:.1f} {:.1f}", X(point.seconds), y_of(point.value));
    } else {
      path += fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", X(edge.back().seconds), bottom,
                          X(edge.front().seconds), bottom);
    }
    out_ += fmt::format("<path class=\"area a{}\" d=\"{}Z\"/>\n", color, path);
  }

  template <typename YOf>
  std::string Steps(const Series& series, const YOf& y_of) const {
    std::string path;
    for (const Point& point : series) {
      const double x = X(point.seconds), y = y_of(point.value);
      path += path.empty() ? fmt::format("M{:.1f} {:.1f}", x, y) : fmt::format("H{:.1f}V{:.1f}", x, y);
    }
    return path;
  }

  template <typename YOf>
  void Line(const ChartLine& line, const YOf& y_of) {
    const Series points = Thinned(*line.points, time_.high);
    if (points.empty()) return;
    out_ += fmt::format("<path class=\"line l{}{}\" d=\"{}\"/>\n", line.color, line.dashed ? " dash" : "",
                        line.steps ? Steps(points, y_of) : Path(points, y_of));
  }

  void TimeAxis(double bottom) {
    for (int part = 0; part <= time_.parts(); ++part) {
      const double x = kLeft + part * kPlotWidth / time_.parts();
      out_ +=
          fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>\n",
                      x, bottom, bottom + 4);
      Text(x, bottom + 18, "", part == time_.parts() ? "end" : "middle",
           time_.Label(part) + (part == time_.parts() ? " s" : ""));
    }
  }

  static double LegendWidth(const ChartLine& line) { return 30 + kCharacterWidth * Columns(line.label) + 14; }

  // Calls place(line, is an area, x, row) for each entry, from right of the title on.
  template <typename F>
  static int PlaceLegend(const ChartPanel& panel, F&& place) {
    const double begin = kLeft + 8 * Columns(panel.title) + 24;
    double x = begin;
    int row = 0;
    const auto put = [&](const ChartLine& line, bool area) {
      if (line.label.empty()) return;
      if (x + LegendWidth(line) > kWidth && x > begin) {
        x = begin;
        ++row;
      }
      place(line, area, x, row);
      x += LegendWidth(line);
    };
    for (const ChartLine& area : panel.stacked) put(area, true);
    for (const ChartLine& line : panel.lines) put(line, false);
    return row + 1;
  }
  static int LegendRows(const ChartPanel& panel) {
    return PlaceLegend(panel, [](const ChartLine&, bool, double, int) {});
  }
  void Legend(const ChartPanel& panel, double y) {
    PlaceLegend(panel, [&](const ChartLine& line, bool area, double x, int row) {
      const double middle = y + row * kLegendRow - 4;
      if (area) {
        out_ +=
            fmt::format("<rect class=\"area a{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"22\" height=\"10\"/>\n",
                        line.color, x, middle - 5);
      } else {
        out_ += fmt::format("<path class=\"line l{}{}\" d=\"M{:.1f} {:.1f}h22\"/>\n", line.color,
                            line.dashed ? " dash" : "", x, middle);
      }
      Text(x + 28, middle + 4, "", "start", line.label);
    });
  }

  double seconds_;
  Axis time_;
  double y_ = 0;  // where the next panel begins
  std::string out_;
};

bool HasPoints(const ChartPanel& panel) {
  const auto drawn = [](const ChartLine& line) { return !line.points->empty(); };
  return std::ranges::any_of(panel.stacked, drawn) || std::ranges::any_of(panel.lines, drawn);
}

}  // namespace

std::string DrawCharts(std::string_view title, std::span<const ChartPanel> panels, double seconds) {
  Drawing drawing(seconds);
  drawing.Title(title);
  for (const ChartPanel& panel : panels) {
    if (HasPoints(panel)) drawing.Panel(panel);
  }
  return drawing.Finish();
}

}  // namespace sluice::app
