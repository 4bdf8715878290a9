#include "platform/atomic_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/check.h"
#include "base/units.h"
#include "platform/disk_room.h"
#include "platform/os_error.h"

namespace sluice::platform {
namespace {

constexpr size_t kBufferBytes = 1 * kMiB;
// Dirty pages that may pile up before the disk is put to work on them. Bounds the page cache that a long job
// is charged for, and keeps the last fsync short.
constexpr uint64_t kWritebackBytes = 32 * kMiB;

// Where a rename has to go so that a symbolic link stays one.
std::string ResolveLinks(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  return resolved ? resolved.get() : path;
}

}  // namespace

Result<AtomicWriter> AtomicWriter::Create(const std::string& path, uint64_t expected_bytes,
                                          std::span<const FileIdentity> inputs) {
  struct stat old;
  const bool replaces = ::stat(path.c_str(), &old) == 0;
  if (replaces) {
    if (!S_ISREG(old.st_mode)) {
      return Fail(ErrorCode::kInvalidArgument, "writing {}: it exists and is not a regular file", path);
    }
    if (std::ranges::find(inputs, FileIdentity{old.st_dev, old.st_ino}) != inputs.end()) {
      return Fail(ErrorCode::kInvalidArgument, "writing {}: it is the same file as an input", path);
    }
  }
  const std::string target = ResolveLinks(path);
  SLUICE_TRY(CheckRoom(target, expected_bytes, expected_bytes));
  SLUICE_TRY_ASSIGN(UnfinishedFile file, UnfinishedFile::Create(target));
  // Who may read the old file may read the new one, and nobody else.
  if (replaces) static_cast<void>(::fchmod(file.fd(), old.st_mode & 0777));
  return AtomicWriter(std::move(file), target);
}

AtomicWriter::AtomicWriter(UnfinishedFile file, std::string path)
    : file_(std::move(file)), path_(std::move(path)), size_limit_(FileSizeLimit()) {
  buffer_.reserve(kBufferBytes);
}

Status AtomicWriter::Write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) SLUICE_TRY(Flush());
  if (bytes.size() < kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }
  SLUICE_TRY(WriteAt(flushed_, bytes));
  flushed_ += bytes.size();
  StartWriteback();
  return {};
}

Status AtomicWriter::Pwrite(uint64_t offset, std::span<const std::byte> bytes) {
  SLUICE_CHECK(offset <= position() && bytes.size() <= position() - offset);
  SLUICE_TRY(Flush());
  return WriteAt(offset, bytes);
}

Status AtomicWriter::Flush() {
  SLUICE_TRY(WriteAt(flushed_, buffer_));
  flushed_ += buffer_.size();
  buffer_.clear();
  StartWriteback();
  return {};
}

Status AtomicWriter::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  SLUICE_CHECK(!failed_);  // the file has a hole: it must not be committed
  failed_ = true;
  // Writing past the limit would raise SIGXFSZ, which kills the process unless somebody handles it.
  if (bytes.size() > size_limit_ || offset > size_limit_ - bytes.size()) {
    return OsError(EFBIG, "writing {} bytes of {} at byte {} (the limit is {}, see ulimit -f)", bytes.size(),
                   path_, offset, size_limit_);
  }
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file_.fd(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return OsError(errno, "writing {} bytes of {} at byte {}", bytes.size(), path_, offset);
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  failed_ = false;
  return {};
}

// Starts writing the newest pages to the disk, waits for those of the turn before and drops them: at most two
// turns are dirty. Errors are left to fsync, which reports them too.
void AtomicWriter::StartWriteback() {
  if (flushed_ - written_back_ < kWritebackBytes) return;
  const auto begin = static_cast<off_t>(written_back_);
  const auto size = static_cast<off_t>(flushed_ - written_back_);
  ::sync_file_range(file_.fd(), begin, size, SYNC_FILE_RANGE_WRITE);
  if (begin > 0) {
    ::sync_file_range(file_.fd(), 0, begin,
                      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    static_cast<void>(::posix_fadvise(file_.fd(), 0, begin, POSIX_FADV_DONTNEED));
  }
  written_back_ = flushed_;
}

Status AtomicWriter::Sync() {
  SLUICE_TRY(Flush());
  std::vector<std::byte>().swap(buffer_);
  if (::fsync(file_.fd()) != 0) return OsError(errno, "writing {} to the disk", path_);
  return {};
}

Status AtomicWriter::Commit() {
  SLUICE_TRY(Sync());
  SLUICE_TRY(file_.Place());
  // The name itself is durable once the folder is. Some file systems can't sync a folder; the file is
  // in place anyway.
  const UniqueFd folder(::open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && ::fsync(folder.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    return OsError(errno, "writing the folder of {} to the disk", path_);
  }
  return {};
}

Status WriteWholeFile(const std::string& path, std::string_view contents) {
  SLUICE_TRY_ASSIGN(AtomicWriter writer, AtomicWriter::Create(path, contents.size()));
  SLUICE_TRY(writer.Write(contents));
  return writer.Commit();
}

}  // namespace sluice::platform
