#include "platform/cgroup_memory.h"

#include <utility>

#include "platform/cgroup.h"

namespace sluice::platform {
namespace {

constexpr uint64_t kNoLimit = UINT64_MAX;

// "max" and absent files are no limit. v1 writes "none" as the largest multiple of the page size.
uint64_t ParseLimit(std::string_view text) {
  const uint64_t limit = ParseNumber(text).value_or(kNoLimit);
  return limit < (uint64_t{1} << 62) ? limit : kNoLimit;
}

uint64_t FindNumber(std::string_view table, std::string_view name) {
  const auto field = FindField(table, name);
  return field ? ParseNumber(*field).value_or(0) : 0;
}

}  // namespace

CgroupMemoryReader::CgroupMemoryReader(std::string folder, bool v2)
    : v2_(v2),
      limit_(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes")),
      high_(folder + "/memory.high"),
      usage_(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes")),
      stat_(folder + "/memory.stat") {
  figures_.folder = std::move(folder);
}

bool CgroupMemoryReader::Read(std::span<char> buffer) {
  figures_.limit_bytes =
      std::min(ParseLimit(limit_.Read(buffer)), v2_ ? ParseLimit(high_.Read(buffer)) : kNoLimit);
  if (figures_.limit_bytes == kNoLimit) return false;
  figures_.usage_bytes = ParseNumber(usage_.Read(buffer)).value_or(0);
  // Shared memory and locked pages are on neither of the file lists. v1: "total" is with descendants.
  const std::string_view stat = stat_.Read(buffer);
  figures_.reclaimable_file_bytes = FindNumber(stat, v2_ ? "active_file" : "total_active_file") +
                                    FindNumber(stat, v2_ ? "inactive_file" : "total_inactive_file");
  return true;
}

std::vector<CgroupMemory> ReadCgroupMemory(const std::string& root) {
  CgroupChain chain = FindCgroups("memory", root);
  std::vector<char> buffer(kSystemFileBuffer);
  std::vector<CgroupMemory> groups;
  for (std::string& folder : chain.folders) {
    CgroupMemoryReader reader(std::move(folder), chain.v2);
    if (reader.Read(buffer)) groups.push_back(reader.figures());
  }
  return groups;
}

}  // namespace sluice::platform
