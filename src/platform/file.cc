#include "platform/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/units.h"
#include "platform/os_error.h"

namespace sluice::platform {
namespace {

// read() that is not given up because a signal came in.
template <typename Read>
ssize_t RetryInterrupted(Read read) {
  ssize_t n;
  do n = read();
  while (n < 0 && errno == EINTR);
  return n;
}

Result<struct stat> Stat(int fd, const std::string& path) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return OsError(errno, "reading the attributes of {}", path);
  if (S_ISDIR(info.st_mode)) return Fail(ErrorCode::kInvalidArgument, "{} is a folder, not a file", path);
  return info;
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

Result<File> File::Open(std::string path, Caching caching) {
  // O_NONBLOCK: opening a pipe that nobody writes to must fail below, not wait here. It does nothing
  // to regular files.
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  if (caching == Caching::kDirect) flags |= O_DIRECT;
  UniqueFd fd(::open(path.c_str(), flags));
  if (!fd) {
    if (caching == Caching::kDirect && errno == EINVAL) {
      return Fail(ErrorCode::kUnsupported, "{}: this file system has no direct reads", path);
    }
    return OsError(errno, "opening {}", path);
  }
  SLUICE_TRY_ASSIGN(const struct stat info, Stat(fd.get(), path));
  if (!S_ISREG(info.st_mode)) {
    return Fail(ErrorCode::kInvalidArgument, "{} is not a regular file but a pipe or device", path);
  }
  return File(std::move(fd), std::move(path), FileIdentity{info.st_dev, info.st_ino});
}

Result<uint64_t> File::Size() const {
  SLUICE_TRY_ASSIGN(const struct stat info, Stat(fd(), path_));
  return static_cast<uint64_t>(info.st_size);
}

Result<size_t> File::Pread(uint64_t offset, std::span<std::byte> buffer) const {
  size_t done = 0;
  while (done < buffer.size()) {
    const auto rest = buffer.subspan(done);
    const int64_t n = PreadOnce(offset + done, rest);
    if (n < 0)
      return OsError(static_cast<int>(-n), "reading {} bytes of {} at byte {}", rest.size(), path_,
                     offset + done);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

Status File::PreadFull(uint64_t offset, std::span<std::byte> buffer) const {
  SLUICE_TRY_ASSIGN(const size_t found, Pread(offset, buffer));
  if (found < buffer.size()) {
    return Fail(ErrorCode::kCorrupt, "{} ends early: at byte {} found {} bytes, expected {}", path_, offset,
                found, buffer.size());
  }
  return {};
}

int64_t File::PreadOnce(uint64_t offset, std::span<std::byte> buffer) const {
  const ssize_t n = RetryInterrupted(
      [&] { return ::pread(fd(), buffer.data(), buffer.size(), static_cast<off_t>(offset)); });
  return n < 0 ? -errno : n;
}

size_t File::CopyFromPageCache(uint64_t offset, std::span<std::byte> buffer) const {
  size_t done = 0;
  while (done < buffer.size()) {
    const iovec rest{buffer.data() + done, buffer.size() - done};
    const ssize_t n = RetryInterrupted(
        [&] { return ::preadv2(fd(), &rest, 1, static_cast<off_t>(offset + done), RWF_NOWAIT); });
    if (n <= 0) break;  // not there, the end, or a file system without such reads
    done += static_cast<size_t>(n);
  }
  return done;
}

void File::ExpectRandomReads() const { static_cast<void>(::posix_fadvise(fd(), 0, 0, POSIX_FADV_RANDOM)); }

void File::BeginReading(uint64_t offset, uint64_t size) const {
  static_cast<void>(
      ::posix_fadvise(fd(), static_cast<off_t>(offset), static_cast<off_t>(size), POSIX_FADV_WILLNEED));
}

void File::DropFromPageCache(uint64_t offset, uint64_t size) const {
  // The kernel keeps pages that are named in part only.
  const uint64_t begin = offset / kDirectAlignment * kDirectAlignment;
  const uint64_t end = AlignUp(offset + size, uint64_t{kDirectAlignment});
  static_cast<void>(
      ::posix_fadvise(fd(), static_cast<off_t>(begin), static_cast<off_t>(end - begin), POSIX_FADV_DONTNEED));
}

Result<std::vector<FileIdentity>> IdentitiesOf(std::span<const std::string> paths) {
  std::vector<FileIdentity> identities;
  for (const std::string& path : paths) {
    SLUICE_TRY_ASSIGN(const File file, File::Open(path));
    identities.push_back(file.identity());
  }
  return identities;
}

Result<std::string> ReadWholeFile(const std::string& path, uint64_t max_bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return OsError(errno, "opening {}", path);
  SLUICE_TRY(Stat(fd.get(), path));
  // Grown as bytes arrive: the size of a pipe or a /proc entry is not known before.
  std::string text;
  for (;;) {
    constexpr size_t kFirstChunk = 16 * 1024;
    const size_t old_size = text.size();
    text.resize(old_size + std::max(kFirstChunk, old_size));
    const ssize_t n =
        RetryInterrupted([&] { return ::read(fd.get(), &text[old_size], text.size() - old_size); });
    if (n < 0) return OsError(errno, "reading {} at byte {}", path, old_size);
    text.resize(old_size + static_cast<size_t>(n));
    if (n == 0) return text;
    if (text.size() > max_bytes) {
      return Fail(ErrorCode::kResourceExhausted, "{} has more than the {} bytes that are allowed here", path,
                  max_bytes);
    }
  }
}

}  // namespace sluice::platform
