#include "session/fingerprint.h"

#include <algorithm>
#include <array>

#include "base/hash.h"

namespace sluice::session {

namespace {

constexpr uint64_t kTensorBytes = 4096;

template <typename T>
uint64_t HashValue(const T& value, uint64_t hash) {
  return HashBytes(std::as_bytes(std::span(&value, 1)), hash);
}
uint64_t HashText(std::string_view text, uint64_t hash) {
  return HashBytes(std::as_bytes(std::span(text)), HashValue(text.size(), hash));
}

}  // namespace

Result<uint64_t> Fingerprint(const model::Model& model) {
  const gguf::GgufFile& file = model.file();
  uint64_t hash = kHashSeed;
  for (const gguf::Shard& shard : file.shards())
    hash = HashValue(shard.data_offset, HashValue(shard.file_bytes, hash));
  for (const gguf::Entry& entry : file.metadata().entries())
    hash = HashBytes(entry.payload, HashValue(entry.count, HashValue(entry.type, HashText(entry.key, hash))));
  std::array<std::byte, kTensorBytes> first;
  for (const gguf::Tensor& tensor : file.tensors()) {
    const std::span<std::byte> bytes(first.data(),
                                     static_cast<size_t>(std::min(tensor.size_bytes, kTensorBytes)));
    SLUICE_TRY(file.Read(tensor, 0, bytes));
    hash = HashText(tensor.name, HashValue(tensor.dims, HashValue(tensor.type_id, hash)));
    hash = HashBytes(bytes, HashValue(tensor.offset, hash));
  }
  return hash;
}

}  // namespace sluice::session
