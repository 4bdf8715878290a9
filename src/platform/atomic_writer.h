// AtomicWriter: makes a file that is there whole or not at all. Bytes go to an UnfinishedFile in the same
// folder; Commit makes them durable and puts it in the target's place. Whatever fails before that leaves the
// old file untouched, and nothing else.
//
// Owns the unfinished file; move-only; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "platform/file.h"
#include "platform/unfinished_file.h"

namespace sluice::platform {

class AtomicWriter {
 public:
  // `expected_bytes` (0 = unknown) is compared with the room there first (CheckRoom). `inputs` are the files
  // that the new one is made from. Errors: kInvalidArgument when `path` leads to one of them, or to something
  // that is no regular file; kIo when there is no room or the folder can't be written to; kNotFound when
  // there is no such folder.
  static Result<AtomicWriter> Create(const std::string& path, uint64_t expected_bytes = 0,
                                     std::span<const FileIdentity> inputs = {});
  AtomicWriter(AtomicWriter&&) noexcept = default;
  AtomicWriter& operator=(AtomicWriter&&) = delete;

  // Appends. Buffered, so small pieces are fine. After an error all that is left is to drop the writer.
  Status Write(std::span<const std::byte> bytes);
  Status Write(std::string_view text) { return Write(std::as_bytes(std::span(text))); }
  // The number of bytes appended so far.
  uint64_t position() const { return flushed_ + buffer_.size(); }
  // Replaces bytes that were appended before: offset + size ≤ position(). For headers known only at the end.
  Status Pwrite(uint64_t offset, std::span<const std::byte> bytes);

  // Makes what was written durable, and gives its buffer back. Errors: kIo.
  Status Sync();

  // Puts the file in its place, durable. Nothing can be written afterwards.
  Status Commit();

 private:
  AtomicWriter(UnfinishedFile file, std::string path);
  Status Flush();
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);
  void StartWriteback();

  UnfinishedFile file_;
  std::string path_;  // the target, symbolic links resolved
  std::vector<std::byte> buffer_;
  uint64_t flushed_ = 0;       // bytes handed to the kernel
  uint64_t written_back_ = 0;  // … of which the kernel was told to write to the disk
  uint64_t size_limit_;        // RLIMIT_FSIZE
  bool failed_ = false;
};

// Replaces the contents of a small file in one step.
Status WriteWholeFile(const std::string& path, std::string_view contents);

}  // namespace sluice::platform
