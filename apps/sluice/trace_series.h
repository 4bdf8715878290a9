// The series of numbers in a trace file (docs/observation.md), for `sluice plot`.
//
// A trace is a file from outside: whatever its bytes are, reading it ends with series or with an error, and
// takes memory for no more than the points it has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/result.h"

namespace sluice::app {

struct Point {
  double seconds = 0;  // since the trace began
  double value = 0;
};
using Series = std::vector<Point>;  // by ascending time

struct NamedSeries {
  std::string name;
  Series points;
};

struct TraceSeries {
  std::string model, residency;  // empty where the file doesn't say
  std::optional<uint64_t> budget_bytes;
  std::vector<NamedSeries> accounts;  // bytes, in the order of the file
  Series resident;                    // bytes
  Series reading, answering;          // tokens a second
  Series bytes_read;                  // from storage, since the model was opened
  Series frequency;                   // GHz
  Series temperature;                 // °C

  // The accounts together.
  Series Total() const;
  double end_seconds() const;
};

// `text`: the contents of the file. Errors: kCorrupt, saying where and what was expected.
Result<TraceSeries> ReadTrace(std::string_view text);

// How fast a counter that only grows did so between its points: each point has the rate of the stretch that
// it begins, at least `stretch` seconds long; the last one ends them with 0.
Series RateOf(const Series& counter, double stretch);

}  // namespace sluice::app
