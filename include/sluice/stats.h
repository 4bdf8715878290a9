// Stats: what an answer took of memory and of storage, beside what was planned, and what bounded its speed.
//
// Plain values, gathered in some milliseconds; docs/observation.md says how each figure comes about.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "plan/bound.h"
#include "platform/memory_info.h"
#include "platform/process_activity.h"
#include "sluice/engine.h"
#include "sluice/model.h"
#include "sluice/work_figures.h"

namespace sluice {

struct Stats {
  std::string_view residency;
  int workers = 1;
  std::string threads_origin;  // why so many: Engine::threads_origin

  memory::LedgerSnapshot ledger;  // what is charged now, without what is kept for `unaccounted`
  std::array<uint64_t, memory::kAccountCount> planned{};  // by account
  uint64_t planned_unaccounted = 0;
  uint64_t planned_total = 0;
  platform::ProcessMemory process;
  std::optional<uint64_t> proportional_bytes;  // PSS

  WorkFigures reading;    // the prompt
  WorkFigures answering;  // all tokens but the first, which reading brings forth

  // What is resident beyond the ledger's accounts; negative while memory that they hold has not been touched
  // yet. With mapped weights it has what the kernel keeps of them. Nothing where the system doesn't say what
  // is resident.
  std::optional<int64_t> unaccounted_bytes() const;
  // The one of the two that the answer's speed is about.
  const WorkFigures& last_work() const { return answering.passes > 0 ? answering : reading; }
};

// As things stand now.
Stats GatherStats(const Engine& engine, const Model& model, const WorkFigures& reading,
                  const WorkFigures& answering);

// What bounded the speed of last_work(), on a device whose memory reads so fast (nothing: not measured).
plan::Bound FindBound(const Stats& stats, std::optional<double> memory_bytes_per_second);

}  // namespace sluice
