#include "sluice/engine.h"

#include <algorithm>

#include "base/units.h"
#include "plan/budget.h"
#include "plan/pressure.h"
#include "platform/cpu_topology.h"
#include "platform/memory_gauge.h"

namespace sluice {

namespace {

constexpr int kMaxThreads = 256;

Result<const kernels::Kernels*> ChooseKernels(const std::string& name, const platform::CpuFeatures& cpu) {
  if (name.empty()) return &kernels::BestKernels(cpu);
  const kernels::Kernels* found = kernels::FindKernels(name);
  if (found == nullptr) {
    std::string known;
    for (const kernels::Kernels* table : kernels::AllKernels()) {
      if (!known.empty()) known += ", ";
      known += table->name;
    }
    return Fail(ErrorCode::kInvalidArgument, "there are no kernels '{}'; this build has {}", name, known);
  }
  if (!found->supported(cpu)) {
    return Fail(ErrorCode::kUnsupported, "this processor lacks what the kernels '{}' need; '{}' would run", name,
                kernels::BestKernels(cpu).name);
  }
  return found;
}

}  // namespace

struct Engine::Impl {
  Impl(uint64_t budget, int threads, std::vector<int> cores)
      : ledger(budget),
        pool({.threads = threads, .cores = std::move(cores)}),
        pressure(clock, plan::MarksFor(gauge.AvailableBytes(), budget),
                 [this] { return gauge.AvailableBytes(); }) {}

  memory::Ledger ledger;
  memory::Reservation unaccounted;  // what the process takes beside the ledger's accounts
  parallel::ThreadPool pool;
  MonotonicClock clock;
  platform::MemoryGauge gauge;
  plan::PressureWatch pressure;
  runtime::Context context;
  std::string budget_origin;
  std::string threads_origin;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Create(const EngineOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return Fail(ErrorCode::kInvalidArgument, "{} threads; expected 1 to {}, or 0 for the default", options.threads,
                kMaxThreads);
  }
  const platform::CpuFeatures cpu = platform::DetectCpuFeatures();
  SLUICE_TRY_ASSIGN(const kernels::Kernels* kernels, ChooseKernels(options.kernels, cpu));

  plan::Budget budget{options.memory_bytes, fmt::format("{}: as asked", FormatBytes(options.memory_bytes))};
  if (budget.bytes == 0) budget = plan::DefaultBudget();
  platform::ThreadChoice threads = platform::ChooseThreads(platform::ReadCpuTopology(), options.threads);

  auto impl = std::make_unique<Impl>(budget.bytes, threads.threads, std::move(threads.cores));
  // A budget that leaves nothing beside is refused by the plan of any model.
  SLUICE_TRY_ASSIGN(impl->unaccounted, memory::Reservation::Take(impl->ledger, memory::Account::kReserve,
                                                                 plan::UnaccountedWithin(budget.bytes)));
  impl->budget_origin = std::move(budget.origin);
  impl->threads_origin = std::move(threads.origin);
  impl->context = {.cpu = cpu,
                   .kernels = kernels,
                   .pool = &impl->pool,
                   .ledger = &impl->ledger,
                   .clock = &impl->clock,
                   .pressure = &impl->pressure,
                   .log = Logger(options.log)};
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

int Engine::threads() const { return impl_->pool.size(); }
std::string_view Engine::kernels() const { return impl_->context.kernels->name; }
uint64_t Engine::budget_bytes() const { return impl_->ledger.Snapshot().budget_bytes; }
const std::string& Engine::budget_origin() const { return impl_->budget_origin; }
const std::string& Engine::threads_origin() const { return impl_->threads_origin; }
const runtime::Context& Engine::context() const { return impl_->context; }

}  // namespace sluice
