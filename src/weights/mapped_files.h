// MappedFiles: the files of a model in the address space, for --residency mmap. The kernel decides what is in
// memory.
//
// A file that shrinks while it is mapped ends nothing by a signal (platform/shrink_guard.h); Check says so.
// Any thread may read; made and destroyed by one.
#pragma once

#include <vector>

#include "base/result.h"
#include "gguf/reader.h"
#include "platform/file.h"
#include "platform/mapping.h"
#include "platform/shrink_guard.h"
#include "weights/schedule.h"

namespace sluice::weights {

class MappedFiles {
 public:
  MappedFiles() = default;  // no files
  // `model` must outlive the result. Errors: those of OpenShard, Mapping::OfFile and ShrinkGuard::Watch.
  static Result<MappedFiles> Open(const gguf::GgufFile& model);

  bool empty() const { return files_.empty(); }
  const std::byte* At(const Extent& extent) const {
    return files_[extent.shard].mapping.bytes().data() + extent.offset;
  }
  // kCorrupt when a file is shorter than it was, or was in the meantime: what was read may have been zeros.
  Status Check() const;

 private:
  struct MappedFile {
    const gguf::Shard* shard;
    platform::File file;
    platform::Mapping mapping;
    platform::ShrinkGuard guard;  // ends before the mapping does
  };
  std::vector<MappedFile> files_;  // by shard
};

}  // namespace sluice::weights
