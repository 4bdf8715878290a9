// What this process has made the kernel do since it began: page faults, reads from storage. Counters only
// grow; what happened between two readings is their difference.
//
// Each call reads files of the kernel anew; any thread. `root`: see system_files.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::platform {

// Nothing for a figure that the kernel doesn't give.
struct ProcessActivity {
  std::optional<uint64_t> minor_faults;   // served from memory
  std::optional<uint64_t> major_faults;   // that waited for storage
  std::optional<uint64_t> storage_bytes;  // fetched from storage, page cache and mapped files included
};
// All threads of this process together.
ProcessActivity ReadProcessActivity(const std::string& root = "");

}  // namespace sluice::platform
