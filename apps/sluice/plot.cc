// sluice plot: the series of one or several traces as an SVG.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "chart_svg.h"
#include "command.h"
#include "glyphs.h"
#include "output.h"
#include "sluice/atomic_file.h"
#include "sluice/usage.h"
#include "trace_series.h"

namespace sluice::app {

namespace {

constexpr uint64_t kMostTraceBytes = 512 << 20;
constexpr size_t kMostTraces = 6;

struct PlotFlags {
  std::vector<std::string> traces;
  std::string output;
};

// A trace with what is drawn of it beside its own series.
struct Drawn {
  std::string label;  // in front of its lines; empty when it is the only one
  TraceSeries trace;
  Series total, budget, storage;
};

// "Llama 3.1 8B, pin", "Llama 3.1 8B: a, b" for several traces of one model, else what the traces are called.
std::string Title(const std::vector<Drawn>& all) {
  const TraceSeries& first = all.front().trace;
  const std::string model = first.model.empty() ? "a model without a name" : first.model;
  if (all.size() == 1) return first.residency.empty() ? model : model + ", " + first.residency;
  const bool one_model =
      std::ranges::all_of(all, [&](const Drawn& drawn) { return drawn.trace.model == first.model; });
  std::string title = one_model ? model + ": " : "";
  for (const Drawn& drawn : all)
    title += (&drawn == &all.front() ? "" : ", ") + drawn.label.substr(0, drawn.label.size() - 1);
  return title;
}

Result<std::vector<Drawn>> ReadTraces(const std::vector<std::string>& paths) {
  std::vector<Drawn> all;
  for (const std::string& path : paths) {
    SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(path, kMostTraceBytes));
    auto trace = ReadTrace(text);
    if (!trace) return Annotate(std::move(trace).error(), path);
    Drawn drawn{.trace = *std::move(trace)};
    if (paths.size() > 1) drawn.label = std::filesystem::path(path).stem().string() + " ";
    const double end = drawn.trace.end_seconds();
    drawn.total = drawn.trace.Total();
    // A rate over fewer reads than these would show single reads.
    drawn.storage = RateOf(drawn.trace.bytes_read, end / 200);
    if (drawn.trace.budget_bytes) {
      const auto budget = static_cast<double>(*drawn.trace.budget_bytes);
      drawn.budget = {{0, budget}, {end, budget}};
    }
    all.push_back(std::move(drawn));
  }
  return all;
}

// A budget far above all that is used would press everything else to the bottom.
bool ShowsBudget(const Drawn& drawn) {
  double most = 0;
  for (const Series* series : {&drawn.total, &drawn.trace.resident}) {
    for (const Point& point : *series) most = std::max(most, point.value);
  }
  return !drawn.budget.empty() && drawn.budget.front().value < 3 * most;
}

ChartPanel MemoryPanel(const std::vector<Drawn>& all) {
  ChartPanel panel;
  double most = 0;
  const auto cover = [&most](const Series& series) {
    for (const Point& point : series) most = std::max(most, point.value);
  };
  const bool alone = all.size() == 1;
  int color = 0;
  for (const Drawn& drawn : all) {
    cover(drawn.total);
    cover(drawn.trace.resident);
    if (alone) {
      for (const NamedSeries& account : drawn.trace.accounts) {
        if (std::ranges::all_of(account.points, [](const Point& point) { return point.value == 0; }))
          continue;
        panel.stacked.push_back({account.name, &account.points, color++ % kChartColors + 1});
      }
    }
    const int own = alone ? 0 : ++color;
    if (!alone) panel.lines.push_back({drawn.label + "accounts", &drawn.total, own, true});
    panel.lines.push_back({drawn.label + "resident", &drawn.trace.resident, own});
    if (alone && ShowsBudget(drawn)) panel.lines.push_back({"budget", &drawn.budget, 0, true});
  }
  const bool large = most >= static_cast<double>(kGiB);
  panel.title = large ? "Memory, GiB" : "Memory, MiB";
  panel.unit = static_cast<double>(large ? kGiB : kMiB);
  return panel;
}

// A panel with a line of each trace.
ChartPanel LinesPanel(std::string title, double unit, const std::vector<Drawn>& all,
                      const std::function<std::vector<ChartLine>(const Drawn&)>& lines_of) {
  ChartPanel panel{.title = std::move(title), .unit = unit};
  for (size_t i = 0; i < all.size(); ++i) {
    int color = all.size() == 1 ? 0 : static_cast<int>(i);
    for (ChartLine line : lines_of(all[i])) {
      if (line.points->empty()) continue;
      line.label = all[i].label + line.label;
      line.color = all.size() == 1 ? ++color : color + 1;
      panel.lines.push_back(std::move(line));
    }
  }
  return panel;
}

Result<int> Plot(const PlotFlags& flags) {
  if (flags.traces.size() > kMostTraces)
    return Fail(ErrorCode::kInvalidArgument, "{} traces; at most {} can be told apart in one drawing",
                flags.traces.size(), kMostTraces);
  for (const std::string& path : flags.traces) {
    std::error_code ignored;
    if (std::filesystem::equivalent(path, flags.output, ignored))
      return Fail(ErrorCode::kInvalidArgument, "-o {}: that is the trace itself", flags.output);
  }
  SLUICE_TRY_ASSIGN(const std::vector<Drawn> all, ReadTraces(flags.traces));
  constexpr double kGiga = 1e9;
  using Lines = std::vector<ChartLine>;
  std::vector<ChartPanel> panels{MemoryPanel(all)};
  panels.push_back(LinesPanel("Answering, tokens/s", 1, all, [](const Drawn& d) {
    return Lines{{.label = "answering", .points = &d.trace.answering, .steps = true}};
  }));
  panels.push_back(LinesPanel("Reading the prompt, tokens/s", 1, all, [](const Drawn& d) {
    return Lines{{.label = "reading", .points = &d.trace.reading, .steps = true}};
  }));
  panels.push_back(LinesPanel("Storage, GB/s", kGiga, all, [](const Drawn& d) {
    return Lines{{.label = "read", .points = &d.storage, .steps = true}};
  }));
  panels.push_back(LinesPanel("Frequency, GHz", 1, all, [](const Drawn& d) {
    return Lines{{"fastest core", &d.trace.frequency}};
  }));
  panels.push_back(LinesPanel("Temperature, °C", 1, all, [](const Drawn& d) {
    return Lines{{"hottest sensor", &d.trace.temperature}};
  }));
  panels.back().from_zero = false;
  double end = 0;
  for (const Drawn& drawn : all) end = std::max(end, drawn.trace.end_seconds());
  const std::string title = Title(all);
  SLUICE_TRY(platform::WriteWholeFile(flags.output, DrawCharts(title, panels, end)));
  Note(fmt::format("{}: {:.1f} s of {}", Printable(flags.output), end, Printable(title)));
  return kExitOk;
}

}  // namespace

void AddPlot(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("plot", "Draw traces (of run, chat or bench --trace) as an SVG");
  auto flags = std::make_shared<PlotFlags>();
  command->add_option("trace", flags->traces, "Trace files; several are laid over each other")->required();
  command->add_option("-o,--output", flags->output, "The SVG to write")->required();
  command->final_callback([flags, &action] { action = [flags] { return Plot(*flags); }; });
}

}  // namespace sluice::app
