#include "sluice/stats.h"

#include <algorithm>

namespace sluice {

namespace {

using weights::Residency;

// The difference of two readings of a counter; nothing when one of them is missing.
template <typename T>
std::optional<T> Grown(const std::optional<T>& from, const std::optional<T>& to) {
  if (!from || !to) return std::nullopt;
  return *to - std::min(*from, *to);
}

template <typename T>
std::optional<T> Sum(const std::optional<T>& a, const std::optional<T>& b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

}  // namespace

std::optional<double> WorkFigures::bytes_read_per_token() const {
  if (!bytes_read || tokens == 0) return std::nullopt;
  return static_cast<double>(*bytes_read) / static_cast<double>(tokens);
}

std::optional<double> WorkFigures::stall_seconds_per_token() const {
  if (!stall_seconds || tokens == 0) return std::nullopt;
  return *stall_seconds / static_cast<double>(tokens);
}

WorkFigures& WorkFigures::operator+=(const WorkFigures& other) {
  if (passes == 0) return *this = other;
  tokens += other.tokens;
  passes += other.passes;
  seconds += other.seconds;
  bytes_read = Sum(bytes_read, other.bytes_read);
  stall_seconds = Sum(stall_seconds, other.stall_seconds);
  activity = {.minor_faults = Sum(activity.minor_faults, other.activity.minor_faults),
              .major_faults = Sum(activity.major_faults, other.activity.major_faults),
              .storage_bytes = Sum(activity.storage_bytes, other.activity.storage_bytes)};
  memory_bytes += other.memory_bytes;
  return *this;
}

WorkMeter::WorkMeter(const Engine& engine, const session::Session& session)
    : engine_(engine), session_(session), last_(Now()) {}

WorkMeter::Counters WorkMeter::Now() const {
  return {.seconds = engine_.context().clock->NowSeconds(),
          .passes = session_.passes(),
          .held = static_cast<int64_t>(session_.tokens().size()),
          .store = session_.model().store().stats(),
          .activity = platform::ReadProcessActivity()};
}

WorkFigures WorkMeter::Lap() {
  const Counters now = Now();
  WorkFigures work{.passes = now.passes - last_.passes, .seconds = now.seconds - last_.seconds};
  work.activity = {.minor_faults = Grown(last_.activity.minor_faults, now.activity.minor_faults),
                   .major_faults = Grown(last_.activity.major_faults, now.activity.major_faults),
                   .storage_bytes = Grown(last_.activity.storage_bytes, now.activity.storage_bytes)};
  if (session_.model().store().options().residency == Residency::kMmap) {
    // Only the kernel knows, and it doesn't say how long anybody waited.
    work.bytes_read = work.activity.storage_bytes;
  } else {
    work.bytes_read = now.store.bytes_read - last_.store.bytes_read;
    work.stall_seconds = now.store.stall_seconds - last_.store.stall_seconds;
  }
  // Each pass goes through all weights once, and through what its tokens see of the cache: about the mean of
  // first and last.
  const auto seen = [this](int64_t held) { return static_cast<double>(session_.SeenBytes(held)); };
  work.memory_bytes =
      static_cast<double>(work.passes) * (static_cast<double>(session_.model().weights().bytes_per_token) +
                                          (seen(last_.held) + seen(now.held)) / 2);
  last_ = now;
  return work;
}

std::optional<int64_t> Stats::unaccounted_bytes() const {
  if (!process.rss_bytes) return std::nullopt;
  return static_cast<int64_t>(*process.rss_bytes) - static_cast<int64_t>(ledger.total_bytes());
}

Stats GatherStats(const Engine& engine, const Model& model, const WorkFigures& reading,
                  const WorkFigures& answering) {
  const plan::Plan& plan = model.plan();
  Stats stats{.residency = weights::ResidencyName(plan.store.residency),
              .workers = engine.threads(),
              .threads_origin = engine.threads_origin(),
              .ledger = engine.context().ledger->Snapshot(),
              .planned = plan.accounts,
              .planned_unaccounted = plan.unaccounted_bytes,
              .planned_total = plan.total_bytes(),
              .process = platform::ReadProcessMemory(),
              .proportional_bytes = platform::ReadProportionalBytes(),
              .reading = reading,
              .answering = answering};
  // What was charged before the plan was made is in neither of its other accounts: a trace's buffer.
  stats.planned[static_cast<size_t>(memory::Account::kReserve)] += plan.used_bytes;
  // The engine keeps that much free, so that a plan can count on it; nobody holds it.
  uint64_t& reserve = stats.ledger.used_bytes[static_cast<size_t>(memory::Account::kReserve)];
  reserve -= std::min(reserve, plan::UnaccountedWithin(engine.budget_bytes()));
  return stats;
}

plan::Bound FindBound(const Stats& stats, std::optional<double> memory_bytes_per_second) {
  const WorkFigures& work = stats.last_work();
  return plan::FindBound({.seconds = work.passes > 0 ? work.seconds : 0,
                          .workers = stats.workers,
                          .stall_seconds = work.stall_seconds,
                          .memory_bytes = work.memory_bytes,
                          .memory_bytes_per_second = memory_bytes_per_second});
}

}  // namespace sluice
