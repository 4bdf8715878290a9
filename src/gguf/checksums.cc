#include "gguf/checksums.h"

#include "base/check.h"
#include "base/xxh64.h"
#include "gguf/header.h"

namespace sluice::gguf {
namespace {

constexpr std::string_view kAlgorithmKey = "sluice.checksum.algorithm";
constexpr std::string_view kTensorsKey = "sluice.checksum.tensors";
constexpr std::string_view kModelKey = "sluice.checksum.model";
constexpr std::string_view kAlgorithm = "xxh64";

bool IsLayout(std::string_view key) {
  return key.starts_with("split.") || key.starts_with("sluice.") || key == kAlignmentKey;
}

// Numbers and texts one after the other, each text behind its length.
class Digest {
 public:
  void Add(uint64_t value) { hash_.Add(std::as_bytes(std::span(&value, 1))); }
  void Add(std::span<const std::byte> bytes) {
    Add(uint64_t{bytes.size()});
    hash_.Add(bytes);
  }
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }
  uint64_t value() const { return hash_.digest(); }

 private:
  Xxh64 hash_;
};

}  // namespace

Result<std::optional<Checksums>> ReadChecksums(const Metadata& metadata, uint64_t tensor_count) {
  if (!metadata.Has(kAlgorithmKey)) return std::optional<Checksums>();
  SLUICE_TRY_ASSIGN(const std::string_view algorithm, metadata.GetString(kAlgorithmKey));
  if (algorithm != kAlgorithm) {
    return Fail(ErrorCode::kUnsupported, "metadata key {}: \"{}\"; this build knows {}", kAlgorithmKey,
                algorithm, kAlgorithm);
  }
  const Entry* entry = metadata.Find(kTensorsKey);
  if (entry == nullptr || entry->type != ValueType::kArray || entry->element_type != ValueType::kU64 ||
      entry->count != tensor_count) {
    return Fail(ErrorCode::kCorrupt, "metadata key {}: {}, expected an array of {} u64", kTensorsKey,
                entry == nullptr ? "is missing" : "is " + Describe(*entry), tensor_count);
  }
  Checksums checksums;
  const NumberArray<uint64_t> numbers(entry->element_type, entry->payload, entry->count);
  for (size_t i = 0; i < numbers.size(); ++i) checksums.tensors.push_back(numbers[i]);
  SLUICE_TRY_ASSIGN(checksums.model, metadata.GetU64(kModelKey));
  return std::optional(std::move(checksums));
}

void SetChecksums(const Checksums& checksums, Metadata& metadata) {
  metadata.SetString(kAlgorithmKey, kAlgorithm);
  metadata.SetU64s(kTensorsKey, checksums.tensors);
  metadata.SetU64(kModelKey, checksums.model);
}

void RemoveChecksums(Metadata& metadata) {
  for (const std::string_view key : {kAlgorithmKey, kTensorsKey, kModelKey}) metadata.Remove(key);
}

uint64_t ModelChecksum(const Metadata& metadata, std::span<const Tensor> tensors,
                       std::span<const uint64_t> tensor_checksums) {
  SLUICE_CHECK(tensors.size() == tensor_checksums.size());
  Digest digest;
  for (const Entry& entry : metadata.entries()) {
    if (IsLayout(entry.key)) continue;
    digest.Add(entry.key);
    digest.Add(static_cast<uint64_t>(entry.type));
    digest.Add(static_cast<uint64_t>(entry.element_type));
    digest.Add(entry.payload);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    digest.Add(tensors[i].name);
    digest.Add(uint64_t{tensors[i].type_id});
    for (const uint64_t dim : tensors[i].dims) digest.Add(dim);
    digest.Add(tensor_checksums[i]);
  }
  return digest.value();
}

Status CompareChecksum(std::string_view tensor, uint64_t found, uint64_t expected) {
  if (found == expected) return {};
  return Fail(ErrorCode::kCorrupt, "tensor {}: its bytes have changed: checksum {:016x}, expected {:016x}",
              tensor, found, expected);
}

}  // namespace sluice::gguf
