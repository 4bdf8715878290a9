// How statistics are shown: a table on stderr for people, one JSON object for programs. docs/observation.md
// explains each line.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "sluice/stats.h"

namespace sluice::app {

// With what `sluice plan` once measured of this device, if it did.
plan::Bound BoundOnThisDevice(const Engine& engine, const Stats& stats);

void PrintStats(const Stats& stats, const plan::Bound& bound);
nlohmann::ordered_json StatsJson(const Stats& stats, const plan::Bound& bound);

// null for a figure that is not known.
template <typename T>
nlohmann::ordered_json JsonOrNull(const std::optional<T>& figure) {
  return figure ? nlohmann::ordered_json(*figure) : nlohmann::ordered_json(nullptr);
}

}  // namespace sluice::app
