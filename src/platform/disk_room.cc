#include "platform/disk_room.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>

#include "base/units.h"

namespace sluice::platform {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

uint64_t LargestFileOn(uint64_t file_system_type) {
  constexpr uint64_t kFat = 0x4d44;  // MSDOS_SUPER_MAGIC of linux/magic.h: all of FAT, but not exFAT
  return file_system_type == kFat ? 4 * kGiB - 1 : UINT64_MAX;
}

uint64_t FileSizeLimit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

Status CheckRoom(const std::string& path, uint64_t largest_bytes, uint64_t total_bytes) {
  const std::string folder = FolderOf(path);
  struct statfs kind;
  const uint64_t largest =
      ::statfs(folder.c_str(), &kind) == 0 ? LargestFileOn(static_cast<uint64_t>(kind.f_type)) : UINT64_MAX;
  if (largest_bytes > largest) {
    return Fail(
        ErrorCode::kIo,
        "writing {}: a file of {} ({} bytes) is too large for the file system there (FAT), which holds "
        "files of up to {} bytes: use another, or parts (sluice split)",
        path, FormatBytes(largest_bytes), largest_bytes, largest);
  }
  if (largest_bytes > FileSizeLimit()) {
    return Fail(ErrorCode::kIo,
                "writing {}: a file of {} ({} bytes) is above this process's limit of {} (ulimit -f)", path,
                FormatBytes(largest_bytes), largest_bytes, FileSizeLimit());
  }
  struct statvfs info;
  if (::statvfs(folder.c_str(), &info) != 0) return {};  // a missing folder is reported by what comes next
  const uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  if (free_bytes >= total_bytes) return {};
  return Fail(ErrorCode::kIo, "writing {}: {} ({} bytes) are needed, the disk has {} ({} bytes) left", path,
              FormatBytes(total_bytes), total_bytes, FormatBytes(free_bytes), free_bytes);
}

}  // namespace sluice::platform
