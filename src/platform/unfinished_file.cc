#include "platform/unfinished_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "platform/disk_room.h"
#include "platform/os_error.h"

namespace sluice::platform {
namespace {

constexpr int kAttempts = 100;  // so many writers of one target at a time

std::string BesideName(const std::string& target, int attempt) {
  return fmt::format("{}.partial-{}", target, attempt);
}

bool LeadsTo(const std::string& name, int fd) {
  struct stat opened, named;
  return ::fstat(fd, &opened) == 0 && ::lstat(name.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
         named.st_dev == opened.st_dev;
}

// Says until the descriptor is closed that the file is being written to. Where there are no locks, what is
// left behind can't be told from what is being written, and stays.
void LockAsWriter(int fd) {
  while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) continue;
}

// Removes the file of a writer that is no more. False when it is still written to, or can't be told.
bool RemoveIfLeft(const std::string& name) {
  const UniqueFd fd(::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !LeadsTo(name, fd.get())) return false;
  return ::unlink(name.c_str()) == 0;
}

// The path by which linkat finds an open file without a name.
std::string PathOf(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

bool Link(int fd, const std::string& name) {
  return ::linkat(AT_FDCWD, PathOf(fd).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

UniqueFd OpenNameless(const std::string& target) {
  UniqueFd fd(::open(FolderOf(target).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
  if (fd) LockAsWriter(fd.get());
  return fd;
}

}  // namespace

Result<UnfinishedFile> UnfinishedFile::Create(const std::string& target) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    struct stat info;
    const std::string name = BesideName(target, attempt);
    if (::lstat(name.c_str(), &info) != 0) break;
    RemoveIfLeft(name);
  }
  auto nameless = Nameless(target);
  return nameless ? std::move(nameless) : Named(target);
}

Result<UnfinishedFile> UnfinishedFile::Nameless(const std::string& target) {
  UnfinishedFile file(OpenNameless(target), target, "");
  // Linking is refused in some sandboxes, and that must not be found out after hours of work.
  UnfinishedFile probe(OpenNameless(target), target, "");
  if (!file.fd_ || !probe.fd_ || !probe.LinkBeside())
    return Fail(ErrorCode::kUnsupported, "{}: no files without a name there", FolderOf(target));
  return file;
}

Result<UnfinishedFile> UnfinishedFile::Named(const std::string& target) {
  for (int attempt = 0;;) {
    std::string name = BesideName(target, attempt);
    UniqueFd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd) {
      LockAsWriter(fd.get());
      // Before it was locked, another writer may have taken it for left behind.
      if (LeadsTo(name, fd.get())) return UnfinishedFile(std::move(fd), target, std::move(name));
      continue;
    }
    if (errno != EEXIST || attempt == kAttempts) return OsError(errno, "creating {}", name);
    if (!RemoveIfLeft(name)) ++attempt;
  }
}

UnfinishedFile::UnfinishedFile(UnfinishedFile&& other) noexcept
    : fd_(std::move(other.fd_)), target_(std::move(other.target_)), name_(std::exchange(other.name_, {})) {}

UnfinishedFile::~UnfinishedFile() {
  if (!name_.empty()) ::unlink(name_.c_str());
}

// Gives a nameless file a name beside the target.
Status UnfinishedFile::LinkBeside() {
  for (int attempt = 0;;) {
    std::string name = BesideName(target_, attempt);
    if (Link(fd(), name)) {
      name_ = std::move(name);
      return {};
    }
    if (errno != EEXIST || attempt == kAttempts) return OsError(errno, "creating {}", name);
    if (!RemoveIfLeft(name)) ++attempt;
  }
}

Status UnfinishedFile::Place() {
  if (nameless()) {
    if (Link(fd(), target_)) return {};
    if (errno != EEXIST) return OsError(errno, "creating {}", target_);
    SLUICE_TRY(LinkBeside());
  }
  if (::rename(name_.c_str(), target_.c_str()) != 0)
    return OsError(errno, "renaming {} to {}", name_, target_);
  name_.clear();
  return {};
}

}  // namespace sluice::platform
