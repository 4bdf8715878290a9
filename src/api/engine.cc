#include "sluice/engine.h"

#include <algorithm>

#include "base/units.h"
#include "platform/cpu_topology.h"
#include "platform/memory_info.h"

namespace sluice {

namespace {

constexpr int kMaxThreads = 256;

// What may be taken of the machine's memory without asking: what is available, to the system and within every control
// group, less a reserve for everybody else.
uint64_t DefaultBudget(std::string* origin) {
  const auto memory = platform::ReadSystemMemory();
  if (!memory) {
    *origin = "unlimited: the system does not say how much memory it has";
    return memory::Ledger::kUnlimited;
  }
  uint64_t available = memory->available_bytes, total = memory->total_bytes;
  for (const platform::CgroupMemory& group : platform::ReadCgroupMemory()) {
    available = std::min(available, group.available_bytes());
    total = std::min(total, group.limit_bytes);
  }
  const uint64_t reserve = std::max(kGiB, total / 10);
  // On machines so small that the reserve would take most of it, half is left instead.
  const uint64_t budget = std::max(available > reserve ? available - reserve : 0, available / 2);
  *origin = fmt::format("{}: {} available less a reserve of {}", FormatBytes(budget), FormatBytes(available),
                        FormatBytes(available - budget));
  return budget;
}

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
      : ledger(budget), pool({.threads = threads, .cores = std::move(cores)}) {}

  memory::Ledger ledger;
  parallel::ThreadPool pool;
  MonotonicClock clock;
  runtime::Context context;
  std::string budget_origin;
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

  std::string origin = fmt::format("{}: as asked", FormatBytes(options.memory_bytes));
  const uint64_t budget = options.memory_bytes != 0 ? options.memory_bytes : DefaultBudget(&origin);
  const platform::CpuTopology topology = platform::ReadCpuTopology();
  // More threads than big cores was the caller's choice: then they may run anywhere.
  const std::vector<int> big = platform::BigCores(topology);
  const int threads = options.threads != 0 ? options.threads : platform::DefaultThreadCount(topology);
  const bool keep_on_big = threads <= static_cast<int>(big.size()) && big.size() < topology.cores.size();

  auto impl = std::make_unique<Impl>(budget, threads, keep_on_big ? big : std::vector<int>());
  impl->budget_origin = std::move(origin);
  impl->context = {.cpu = cpu,
                   .kernels = kernels,
                   .pool = &impl->pool,
                   .ledger = &impl->ledger,
                   .clock = &impl->clock,
                   .log = Logger(options.log)};
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

int Engine::threads() const { return impl_->pool.size(); }
std::string_view Engine::kernels() const { return impl_->context.kernels->name; }
uint64_t Engine::budget_bytes() const { return impl_->ledger.Snapshot().budget_bytes; }
const std::string& Engine::budget_origin() const { return impl_->budget_origin; }
const runtime::Context& Engine::context() const { return impl_->context; }

}  // namespace sluice
