#include "platform/process_activity.h"

#include <string_view>
#include <vector>

#include "platform/system_files.h"

namespace sluice::platform {

ProcessActivity ReadProcessActivity(const std::string& root) {
  ProcessActivity activity;
  // "PID (name) state ppid …", proc(5). The name may have spaces and brackets in it: fields count from its
  // last bracket.
  const std::string stat = ReadSystemFile(root + "/proc/self/stat").value_or("");
  const size_t name_end = stat.rfind(") ");
  if (name_end != std::string::npos) {
    constexpr size_t kMinorFaults = 10 - 3,
                     kMajorFaults = 12 - 3;  // of the fields that follow the name, from 0
    const std::vector<std::string_view> fields = Split(std::string_view(stat).substr(name_end + 2), ' ');
    if (fields.size() > kMajorFaults) {
      activity.minor_faults = ParseNumber(fields[kMinorFaults]);
      activity.major_faults = ParseNumber(fields[kMajorFaults]);
    }
  }
  const std::string io = ReadSystemFile(root + "/proc/self/io").value_or("");
  if (const auto field = FindField(io, "read_bytes")) activity.storage_bytes = ParseNumber(*field);
  return activity;
}

}  // namespace sluice::platform
