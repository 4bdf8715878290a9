#include "weights/mapped_files.h"

#include <utility>

#include "weights/shard_file.h"

namespace sluice::weights {

Result<MappedFiles> MappedFiles::Open(const gguf::GgufFile& model) {
  MappedFiles mapped;
  for (const gguf::Shard& shard : model.shards()) {
    SLUICE_TRY_ASSIGN(platform::File file, OpenShard(shard, platform::File::Caching::kPageCache));
    SLUICE_TRY_ASSIGN(platform::Mapping mapping, platform::Mapping::OfFile(file));
    if (mapping.size() != shard.file_bytes) {
      return Fail(ErrorCode::kCorrupt, "{} has changed while it was mapped: {} bytes, before {}", shard.path,
                  mapping.size(), shard.file_bytes);
    }
    SLUICE_TRY_ASSIGN(platform::ShrinkGuard guard, platform::ShrinkGuard::Watch(mapping.bytes()));
    mapped.files_.push_back({&shard, std::move(file), std::move(mapping), std::move(guard)});
  }
  return mapped;
}

Status MappedFiles::Check() const {
  for (const MappedFile& mapped : files_) {
    SLUICE_TRY_ASSIGN(const uint64_t size, mapped.file.Size());
    const gguf::Shard& shard = *mapped.shard;
    if (size < shard.file_bytes) {
      return Fail(ErrorCode::kCorrupt, "{} has become shorter: {} bytes, before {}", shard.path, size,
                  shard.file_bytes);
    }
    if (mapped.guard.page_was_missing()) {
      return Fail(ErrorCode::kCorrupt, "{} has become shorter while it was in use, and has changed since",
                  shard.path);
    }
  }
  return {};
}

}  // namespace sluice::weights
