// Whether what is to be written has room where it is to go, said before the first byte is written.
//
// Pure questions to the system; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace sluice::platform {

// The folder that `path` lies in: "." for a name alone.
std::string FolderOf(const std::string& path);

// The size that no file can exceed on a file system of this type (statfs's f_type): 4 GiB − 1 on FAT.
uint64_t LargestFileOn(uint64_t file_system_type);

// The size that no file of this process can exceed (ulimit -f).
uint64_t FileSizeLimit();

// `largest_bytes`: of the largest file to be written into the folder of `path`; `total_bytes`: of all of
// them. Errors, kIo with both numbers: too large for the file system or the process's limit; more than is
// free. A system that does not say has room.
Status CheckRoom(const std::string& path, uint64_t largest_bytes, uint64_t total_bytes);

}  // namespace sluice::platform
