#include "trace_series.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice::app {

namespace {

using json = nlohmann::ordered_json;  // accounts in the order of the file

constexpr int kMostDepth = 8;
constexpr size_t kMostValues = 200;      // of an event, and of everything between two events
constexpr size_t kMostPoints = 4 << 20;  // of all series
constexpr size_t kMostAccounts = 16;
constexpr size_t kLongestName = 64;
constexpr double kMostSeconds = 1e9;
constexpr double kLargest = 1e18;

// Takes the events of a trace one by one, as a parser comes by them; nothing of them is kept but the points.
class Reader {
 public:
  // Called by the parser for each value of the file; false drops the value.
  bool Visit(int depth, json::parse_event_t event, json& parsed) {
    if (error_) return false;
    if (depth > kMostDepth) return Stop("nested more than {} deep", kMostDepth);
    if (event == json::parse_event_t::key || event == json::parse_event_t::value) {
      return ++values_ <= kMostValues || Stop("more than {} values that belong to no event", kMostValues);
    }
    if (event != json::parse_event_t::object_end) return true;
    // Events lie in the list of a trace object, or in a list alone.
    if (depth == 0 || depth > 2 || !parsed.is_object() || !parsed.contains("ph")) return true;
    if (parsed["ph"] == "C") TakeCounter(parsed);
    ++events_;
    values_ = 0;
    return false;
  }

  // What was wrong first.
  const std::optional<Error>& error() const { return error_; }

  Result<TraceSeries> Finish(const json& whole) {
    if (error_) return *error_;
    if (points_ == 0) {
      return Fail(
          ErrorCode::kCorrupt,
          "no series are in it: expected a trace with counters, as --trace writes them; found {} events",
          events_);
    }
    if (whole.is_object()) TakeAbout(whole);
    for (NamedSeries& account : series_.accounts) Sort(account.points);
    for (Series* series : {&series_.resident, &series_.reading, &series_.answering, &series_.bytes_read,
                           &series_.frequency, &series_.temperature})
      Sort(*series);
    return std::move(series_);
  }

 private:
  template <typename... Args>
  bool Stop(fmt::format_string<Args...> format, Args&&... args) {
    if (!error_)
      error_ = Fail(ErrorCode::kCorrupt, "event {}: {}", events_,
                    fmt::format(format, std::forward<Args>(args)...));
    return false;
  }

  std::optional<double> Number(const json& object, const char* key, double least, double most) {
    const auto found = object.find(key);
    const double value = found != object.end() && found->is_number() ? found->get<double>() : least - 1;
    if (value >= least && value <= most) return value;
    Stop("{}: expected a number from {} to {}", key, least, most);
    return std::nullopt;
  }

  void TakeCounter(const json& event) {
    const auto name = event.find("name"), values = event.find("args");
    if (name == event.end() || !name->is_string() || values == event.end() || !values->is_object()) {
      Stop("a counter without a name or values");
      return;
    }
    const auto time = Number(event, "ts", 0, kMostSeconds * 1e6);
    if (!time) return;
    const double seconds = *time / 1e6;
    const std::string& counter = name->get_ref<const std::string&>();
    if (counter == "memory") return TakeMemory(seconds, *values);
    // Other programs' counters are left alone.
    constexpr struct {
      std::string_view counter;
      const char* key;
      Series TraceSeries::*series;
    } kKnown[] = {{"resident", "RSS", &TraceSeries::resident},
                  {"tokens/s", "reading", &TraceSeries::reading},
                  {"tokens/s", "answering", &TraceSeries::answering},
                  {"storage", "bytes read", &TraceSeries::bytes_read},
                  {"frequency", "GHz", &TraceSeries::frequency},
                  {"temperature", "°C", &TraceSeries::temperature}};
    for (const auto& known : kKnown) {
      if (counter == known.counter) Add(series_.*known.series, seconds, *values, known.key);
    }
  }

  void TakeMemory(double seconds, const json& values) {
    for (const auto& [name, value] : values.items()) {
      if (name.size() > kLongestName) {
        Stop("an account with a name of {} bytes", name.size());
        return;
      }
      auto account = std::ranges::find(series_.accounts, name, &NamedSeries::name);
      if (account == series_.accounts.end()) {
        if (series_.accounts.size() == kMostAccounts) {
          Stop("more than {} accounts", kMostAccounts);
          return;
        }
        series_.accounts.push_back({name, {}});
        account = std::prev(series_.accounts.end());
      }
      Add(account->points, seconds, values, name.c_str());
    }
  }

  void Add(Series& series, double seconds, const json& values, const char* key) {
    const auto value = Number(values, key, 0, kLargest);
    if (!value) return;
    if (points_ == kMostPoints) {
      Stop("more than {} points", kMostPoints);
      return;
    }
    ++points_;
    series.push_back({seconds, *value});
  }

  void TakeAbout(const json& whole) {
    const auto about = whole.find("otherData");
    if (about == whole.end() || !about->is_object()) return;
    const auto text = [&](const char* key) {
      const auto found = about->find(key);
      return found != about->end() && found->is_string() ? found->get<std::string>().substr(0, kLongestName)
                                                         : std::string();
    };
    series_.model = text("model");
    series_.residency = text("residency");
    const auto budget = about->find("budget_bytes");
    if (budget != about->end() && budget->is_number_unsigned())
      series_.budget_bytes = budget->get<uint64_t>();
  }

  static void Sort(Series& series) { std::ranges::stable_sort(series, {}, &Point::seconds); }

  TraceSeries series_;
  std::optional<Error> error_;
  size_t events_ = 0;  // so far
  size_t values_ = 0;  // since the last event
  size_t points_ = 0;
};

}  // namespace

Series TraceSeries::Total() const {
  Series total;
  if (accounts.empty()) return total;
  total = accounts.front().points;
  for (size_t a = 1; a < accounts.size(); ++a) {
    // All accounts have a point at the same times, unless somebody else wrote the file.
    const Series& points = accounts[a].points;
    for (size_t i = 0; i < std::min(total.size(), points.size()); ++i) total[i].value += points[i].value;
  }
  return total;
}

double TraceSeries::end_seconds() const {
  double end = 0;
  const auto reach = [&end](const Series& series) {
    if (!series.empty()) end = std::max(end, series.back().seconds);
  };
  for (const NamedSeries& account : accounts) reach(account.points);
  for (const Series* series : {&resident, &reading, &answering, &bytes_read, &frequency, &temperature})
    reach(*series);
  return end;
}

Result<TraceSeries> ReadTrace(std::string_view text) {
  Reader reader;
  json whole;
  try {
    whole = json::parse(text, [&](int depth, json::parse_event_t event, json& parsed) {
      return reader.Visit(depth, event, parsed);
    });
  } catch (const json::parse_error& error) {
    if (reader.error()) return *reader.error();
    return Fail(ErrorCode::kCorrupt, "not JSON at byte {}: expected a trace as --trace writes it",
                error.byte);
  } catch (const json::exception&) {  // a number that no double holds
    return Fail(ErrorCode::kCorrupt, "not JSON: expected a trace as --trace writes it");
  }
  return reader.Finish(whole);
}

Series RateOf(const Series& counter, double stretch) {
  Series rates;
  if (counter.empty()) return rates;
  Point from = counter.front();
  for (const Point& to : counter) {
    const double seconds = to.seconds - from.seconds;
    if (!(seconds > 0) || seconds < stretch) continue;
    rates.push_back({from.seconds, std::max(0.0, to.value - from.value) / seconds});
    from = to;
  }
  if (!rates.empty()) rates.push_back({from.seconds, 0});
  return rates;
}

}  // namespace sluice::app
