// How a plan is shown: tables for people, one JSON object for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sluice/plan.h"

namespace sluice::app {

// A weight type as the model would run in it; without a plan it does not fit.
struct TypeRow {
  const quantize::Mix* mix = nullptr;
  uint64_t bytes = 0;
  double bytes_per_parameter = 0;
  std::optional<plan::Plan> plan;
  plan::Speed speed;
};

struct PlanReport {
  plan::ModelFacts facts;
  plan::Request request;
  plan::Plan plan;
  plan::Speed speed;
  plan::DeviceProfile device;
  std::optional<plan::StorageReport> storage;  // when it was to be measured
  std::string budget_origin;
  std::string threads_origin;
  std::vector<TypeRow> types;
  bool list_types = false;  // else they only serve advice

  // (budget − KV − activations − overhead) / parameters. 0 without a budget.
  double BytesPerParameterLeft() const;
};

void PrintPlan(const PlanReport& report);
nlohmann::ordered_json PlanJson(const PlanReport& report);

}  // namespace sluice::app
