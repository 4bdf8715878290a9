#include "weights/shard_file.h"

namespace sluice::weights {

Result<platform::File> OpenShard(const gguf::Shard& shard, platform::File::Caching caching) {
  SLUICE_TRY_ASSIGN(platform::File file, platform::File::Open(shard.path, caching));
  SLUICE_TRY_ASSIGN(const uint64_t size, file.Size());
  if (size != shard.file_bytes) {
    return Fail(ErrorCode::kCorrupt, "{} has changed while it was opened: {} bytes, before {}", shard.path,
                size, shard.file_bytes);
  }
  return file;
}

}  // namespace sluice::weights
