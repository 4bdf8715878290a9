// Planner: where every byte of a budget goes, decided before the first weight is loaded.
//
// What the user typed is kept or refused. What was not typed starts from a default and goes down a ladder,
// one step at a time and each said in one line, until everything fits: shorter context → KV cache in 8 bits →
// in 4 bits → smaller batch → streaming the weights. All weights in memory is preferred: a pass over streamed
// weights takes seconds.
//
// Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "memory/ledger.h"
#include "plan/budget.h"
#include "plan/facts.h"
#include "weights/residency.h"

namespace sluice::plan {

using weights::Residency;

inline constexpr int64_t kDefaultContext = 8192;  // at most, when the model allows more
inline constexpr int64_t kDefaultBatch = 512;
inline constexpr int64_t kSmallestContext = 256;  // that the ladder ends at

struct Request {
  uint64_t budget_bytes = memory::Ledger::kUnlimited;  // for all of the process
  uint64_t used_bytes = 0;                             // of it, by what is in the ledger already
  uint64_t reserve_bytes = 0;  // to be left for others of this process (a server, a measurement)
  int threads = 1;
  int sequences = 1;    // conversations of full length
  bool strict = false;  // refuse every step of the ladder

  // Typed by the user, or left to the plan (0, nullopt).
  int64_t context_length = 0;
  std::optional<int64_t> batch;
  std::optional<kv::KvType> k_type, v_type;
  kv::Overflow overflow = kv::Overflow::kStop;
  int64_t sinks = 4;
  std::optional<Residency> residency;
  weights::StoreOptions store;  // ring, slabs and the like; residency and pinned bytes are the plan's
  runtime::Fusion fusion = runtime::Fusion::kAll;
};

struct Plan {
  weights::StoreOptions store;                             // its residency is the plan's
  kv::Settings kv;                                         // context, types, batch, sequences
  std::array<uint64_t, memory::kAccountCount> accounts{};  // by memory::Account: what each will hold
  uint64_t unaccounted_bytes = 0;
  uint64_t used_bytes = 0;  // by others, in the ledger already
  uint64_t budget_bytes = 0;
  uint64_t streamed_bytes = 0;     // read from storage in each pass
  bool bounded = true;             // false for mmap: the kernel decides what stays
  std::vector<std::string> steps;  // of the ladder, each one line

  uint64_t bytes(memory::Account account) const { return accounts[static_cast<size_t>(account)]; }
  uint64_t total_bytes() const;
};

// Errors: kInvalidArgument for a request that makes no sense; kDoesNotFit with what is needed, what there is,
// the largest part of it, and what would fit.
Result<Plan> MakePlan(const ModelFacts& facts, const Request& request);

// The largest context, in whole KV pages, for which a plan with these settings can be made by streaming
// weights if need be (`stream`), or with all of them in memory. 0 when there is none.
int64_t LargestContext(const ModelFacts& facts, const Request& request, kv::KvType k_type, kv::KvType v_type,
                       bool stream);

// The plan in one line: "all weights in memory (4.30 GiB) · context 8192, KV f16 · 5.02 of 7.10 GiB".
std::string Summary(const Plan& plan);

}  // namespace sluice::plan
