// Budget: how many bytes this process may take when nobody said.
//
// What is available to the system and within every control group above this process, less a reserve for
// everybody else; never the machine's total. Reads files of the kernel; any thread. `root`: see
// platform/system_files.h.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::plan {

// What a process takes at most beside the ledger's accounts of `accounted_bytes`: libraries' data, thread
// stacks, small containers, page tables. 5.5 MiB and a hundredth, at most 64 MiB; what was measured is in
// docs/memory.md. Every plan counts it, so that a budget bounds the whole process.
uint64_t UnaccountedBytes(uint64_t accounted_bytes);
// The part of a budget that accounts can't have for that reason.
uint64_t UnaccountedWithin(uint64_t budget_bytes);

struct Budget {
  uint64_t bytes = 0;  // memory::Ledger::kUnlimited when the system does not say what it has
  std::string origin;  // in one line: "7.10 GiB: 8.90 GiB available less a reserve of 1.80 GiB"
};

// The reserve is max(1 GiB, 10 % of total), where total is the lowest limit above this process; on machines
// so small that this would take most of what is available, half is left instead.
Budget DefaultBudget(const std::string& root = "");

}  // namespace sluice::plan
