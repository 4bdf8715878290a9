#include "gguf/tensor_copier.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "base/xxh64.h"

namespace sluice::gguf {
namespace {

constexpr uint64_t kPieceBytes = 4 * kMiB;

}  // namespace

Result<TensorCopier> TensorCopier::Create(const GgufFile& source, CopyProgress progress) {
  TensorCopier copier(source, std::move(progress));
  SLUICE_TRY_ASSIGN(copier.expected_, ReadChecksums(source.metadata(), source.tensors().size()));
  return copier;
}

Status TensorCopier::Copy(const Tensor& tensor, Writer& writer) {
  Xxh64 hash;
  for (uint64_t offset = 0; offset < tensor.size_bytes; offset += piece_.size()) {
    piece_.resize(std::min(kPieceBytes, tensor.size_bytes - offset));
    SLUICE_TRY(source_.Read(tensor, offset, piece_));
    hash.Add(piece_);
    SLUICE_TRY(writer.WriteData(piece_));
    SLUICE_TRY(Advance(piece_.size()));
  }
  checksums_.push_back(hash.digest());
  return Compare(tensor);
}

Status TensorCopier::Compare(const Tensor& tensor) const {
  if (!expected_) return {};
  const uint64_t expected = expected_->tensors[static_cast<size_t>(&tensor - source_.tensors().data())];
  return CompareChecksum(tensor.name, checksums_.back(), expected);
}

Status TensorCopier::Advance(uint64_t bytes) {
  done_ += bytes;
  if (!progress_ || progress_(done_, total_)) return {};
  return Fail(ErrorCode::kInterrupted, "stopped at {} of {}", FormatBytes(done_), FormatBytes(total_));
}

Status TensorCopier::WriteChecksums(std::span<Writer> writers) const {
  std::vector<Tensor> tensors;
  for (const Writer& writer : writers)
    tensors.insert(tensors.end(), writer.tensors().begin(), writer.tensors().end());
  Metadata& metadata = writers[0].metadata();
  const uint64_t model = ModelChecksum(metadata, tensors, checksums_);
  SetChecksums({checksums_, model}, metadata);
  return writers[0].RewriteHeader();
}

Status AddTensors(std::span<const Tensor* const> tensors, Writer& writer) {
  for (const Tensor* tensor : tensors) {
    SLUICE_TRY(RequireKnown(tensor, tensor->name));
    SLUICE_TRY(
        writer.AddTensor(tensor->name, tensor->traits->dtype, std::span(tensor->dims).first(tensor->n_dims)));
  }
  return {};
}

void ReserveChecksums(uint64_t tensor_count, Metadata& metadata) {
  SetChecksums({std::vector<uint64_t>(tensor_count), 0}, metadata);
}

}  // namespace sluice::gguf
