#include "platform/memory_gauge.h"

#include <algorithm>
#include <utility>

#include "platform/cgroup.h"

namespace sluice::platform {

MemoryGauge::MemoryGauge(const std::string& root)
    : meminfo_(root + "/proc/meminfo"), buffer_(kSystemFileBuffer) {
  CgroupChain chain = FindCgroups("memory", root);
  for (std::string& folder : chain.folders) groups_.emplace_back(std::move(folder), chain.v2);
}

uint64_t MemoryGauge::AvailableBytes() {
  uint64_t available = FindKilobytes(meminfo_.Read(buffer_), "MemAvailable").value_or(UINT64_MAX);
  for (CgroupMemoryReader& group : groups_) {
    if (group.Read(buffer_)) available = std::min(available, group.figures().available_bytes());
  }
  return available;
}

}  // namespace sluice::platform
