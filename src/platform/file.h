// Reading files: File, an open file that is read at offsets, and ReadWholeFile. Writing is atomic_writer.h.
//
// A File owns its descriptor; move-only. All of its const functions may be called from several
// threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sluice::platform {

// Which file a path leads to, whatever it is called: equal for hard links, symbolic links, "./x"
// and other spellings.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

class File {
 public:
  enum class Caching {
    kPageCache,
    kDirect  // O_DIRECT: offsets, sizes and addresses must be multiples of kDirectAlignment
  };
  // Enough for every file system that offers direct reads.
  static constexpr size_t kDirectAlignment = 4096;

  // Opens a regular file for reading. Errors: kNotFound; kInvalidArgument for a folder, pipe or device;
  // kUnsupported when the file system has no direct reads; kIo.
  static Result<File> Open(std::string path, Caching caching = Caching::kPageCache);

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }
  FileIdentity identity() const { return identity_; }
  // The size now; a file can shrink or grow while it is open.
  Result<uint64_t> Size() const;

  // Reads from `offset` until `buffer` is full or the file ends; returns the number of bytes.
  // Resumes short reads.
  Result<size_t> Pread(uint64_t offset, std::span<std::byte> buffer) const;
  // The same, where the file ending early is an error (kCorrupt), which names path, offset,
  // found and expected.
  Status PreadFull(uint64_t offset, std::span<std::byte> buffer) const;

  // One read: the bytes that it gave, which may be fewer than asked for and are 0 at the end; or −errno.
  int64_t PreadOnce(uint64_t offset, std::span<std::byte> buffer) const;

  // Copies what the page cache holds of this range, up to the first byte that it does not hold, and reads
  // nothing from storage; returns the number of bytes. Not for kDirect.
  size_t CopyFromPageCache(uint64_t offset, std::span<std::byte> buffer) const;

  // Tells the kernel not to read ahead of what is asked for.
  void ExpectRandomReads() const;

  // Lets the kernel begin to read a range into the page cache, without waiting for it. Best effort. Not for
  // kDirect.
  void BeginReading(uint64_t offset, uint64_t size) const;

  // Asks the kernel to drop the pages that this range touches from the page cache. Best effort.
  void DropFromPageCache(uint64_t offset, uint64_t size) const;

 private:
  File(UniqueFd fd, std::string path, FileIdentity identity)
      : fd_(std::move(fd)), path_(std::move(path)), identity_(identity) {}

  UniqueFd fd_;
  std::string path_;
  FileIdentity identity_;
};

// Which files these paths lead to. Errors: those of File::Open.
Result<std::vector<FileIdentity>> IdentitiesOf(std::span<const std::string> paths);

// The whole contents of a file, pipe or /proc entry. Errors: as File::Open, but pipes and devices are read
// too; kResourceExhausted when there are more than max_bytes.
Result<std::string> ReadWholeFile(const std::string& path, uint64_t max_bytes);

}  // namespace sluice::platform
