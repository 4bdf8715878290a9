#include "plan/budget.h"

#include <algorithm>

#include "base/units.h"
#include "memory/ledger.h"
#include "platform/cgroup_memory.h"
#include "platform/memory_info.h"

namespace sluice::plan {

namespace {

constexpr uint64_t kUnaccountedBase = 11 * kMiB / 2;
constexpr uint64_t kUnaccountedShare = 100;  // one part of so many
constexpr uint64_t kUnaccountedMost = 64 * kMiB;

}  // namespace

uint64_t UnaccountedBytes(uint64_t accounted_bytes) {
  return std::min(kUnaccountedMost, kUnaccountedBase + accounted_bytes / kUnaccountedShare);
}

uint64_t UnaccountedWithin(uint64_t budget_bytes) {
  if (budget_bytes <= kUnaccountedBase) return budget_bytes;
  // The largest a with a + UnaccountedBytes(a) <= budget, to a few bytes.
  const uint64_t accounted = (budget_bytes - kUnaccountedBase) / (kUnaccountedShare + 1) * kUnaccountedShare;
  return std::min(kUnaccountedMost, budget_bytes - accounted);
}

Budget DefaultBudget(const std::string& root) {
  const auto memory = platform::ReadSystemMemory(root);
  if (!memory)
    return {memory::Ledger::kUnlimited, "unlimited: the system does not say how much memory it has"};
  uint64_t available = memory->available_bytes, total = memory->total_bytes;
  std::string where;
  for (const platform::CgroupMemory& group : platform::ReadCgroupMemory(root)) {
    if (group.available_bytes() < available) {
      available = group.available_bytes();
      where = fmt::format(" in the control group {}", group.folder);
    }
    total = std::min(total, group.limit_bytes);
  }
  const uint64_t reserve = std::max(kGiB, total / 10);
  const uint64_t budget = std::max(available > reserve ? available - reserve : 0, available / 2);
  return {budget, fmt::format("{}: {} available{} less a reserve of {}", FormatBytes(budget),
                              FormatBytes(available), where, FormatBytes(available - budget))};
}

}  // namespace sluice::plan
