#include "platform/atomic_writer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/check.h"
#include "base/units.h"
#include "platform/os_error.h"

namespace sluice::platform {
namespace {

constexpr size_t kBufferBytes = 1 * kMiB;
// Dirty pages that may pile up before the disk is put to work on them. Bounds the page cache that a long job
// is charged for, and keeps the last fsync short.
constexpr uint64_t kWritebackBytes = 32 * kMiB;

std::string Folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where a rename has to go so that a symbolic link stays one.
std::string ResolveLinks(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  return resolved ? resolved.get() : path;
}

Status CheckSpace(const std::string& path, uint64_t expected_bytes) {
  struct statvfs info;
  // Unknown free space is no reason to refuse; a missing folder is reported by what comes next.
  if (expected_bytes == 0 || ::statvfs(Folder(path).c_str(), &info) != 0) return {};
  const uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  if (free_bytes >= expected_bytes) return {};
  return Fail(ErrorCode::kIo, "writing {}: {} ({} bytes) are needed, the disk has {} ({} bytes) left", path,
              FormatBytes(expected_bytes), expected_bytes, FormatBytes(free_bytes), free_bytes);
}

uint64_t FileSizeLimit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
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
  SLUICE_TRY(CheckSpace(target, expected_bytes));

  constexpr int kAttempts = 100;  // other writers, or leftovers of ones that were killed
  for (int attempt = 0;; ++attempt) {
    std::string temporary = fmt::format("{}.partial-{}-{}", target, ::getpid(), attempt);
    UniqueFd fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd) {
      // Who may read the old file may read the new one, and nobody else.
      if (replaces) static_cast<void>(::fchmod(fd.get(), old.st_mode & 0777));
      return AtomicWriter(std::move(fd), target, std::move(temporary));
    }
    if (errno != EEXIST || attempt == kAttempts) return OsError(errno, "creating {}", temporary);
  }
}

AtomicWriter::AtomicWriter(UniqueFd fd, std::string path, std::string temporary_path)
    : fd_(std::move(fd)),
      path_(std::move(path)),
      temporary_path_(std::move(temporary_path)),
      size_limit_(FileSizeLimit()) {
  buffer_.reserve(kBufferBytes);
}

AtomicWriter::AtomicWriter(AtomicWriter&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      temporary_path_(std::exchange(other.temporary_path_, {})),
      buffer_(std::move(other.buffer_)),
      flushed_(other.flushed_),
      written_back_(other.written_back_),
      size_limit_(other.size_limit_) {}

AtomicWriter::~AtomicWriter() {
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
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
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
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
  ::sync_file_range(fd_.get(), begin, size, SYNC_FILE_RANGE_WRITE);
  if (begin > 0) {
    ::sync_file_range(fd_.get(), 0, begin,
                      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    static_cast<void>(::posix_fadvise(fd_.get(), 0, begin, POSIX_FADV_DONTNEED));
  }
  written_back_ = flushed_;
}

Status AtomicWriter::Commit() {
  SLUICE_TRY(Flush());
  if (::fsync(fd_.get()) != 0) return OsError(errno, "writing {} to the disk", path_);
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return OsError(errno, "renaming {} to {}", temporary_path_, path_);
  }
  temporary_path_.clear();
  // The rename itself is durable once the folder is. Some file systems can't sync a folder; the file is
  // in place anyway.
  const UniqueFd folder(::open(Folder(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
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
