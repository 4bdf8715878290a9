// TensorCopier: tensors from a model to writers, piece by piece, with their checksums (checksums.h): those
// that the model has are compared, those of what is written are remembered.
//
// One thread at a time; the source outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "gguf/checksums.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

namespace sluice::gguf {

// Called now and then with bytes of tensor data, and at the end with both equal. False stops the work:
// kInterrupted, and no file is left.
using CopyProgress = std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>;

class TensorCopier {
 public:
  // Errors: those of ReadChecksums.
  static Result<TensorCopier> Create(const GgufFile& source, CopyProgress progress);

  // The whole of a tensor of the source. Errors: kCorrupt when its bytes are not what the source's checksums
  // say; those of reading and writing; kInterrupted.
  Status Copy(const Tensor& tensor, Writer& writer);

  // Whether the source has checksums.
  bool compares() const { return expected_.has_value(); }

  // Says the checksums of all that was copied in the header of the first of these, which were written one
  // after the other. Its metadata was given room by ReserveChecksums.
  Status WriteChecksums(std::span<Writer> writers) const;

 private:
  TensorCopier(const GgufFile& source, CopyProgress progress)
      : source_(source), progress_(std::move(progress)), total_(source.tensor_bytes()) {}
  Status Compare(const Tensor& tensor) const;
  Status Advance(uint64_t bytes);

  const GgufFile& source_;
  const CopyProgress progress_;
  std::optional<Checksums> expected_;
  std::vector<uint64_t> checksums_;  // in the order of copying
  std::vector<std::byte> piece_;
  uint64_t done_ = 0;
  const uint64_t total_;
};

// Adds these tensors of a model. Errors: kUnsupported for one of unknown type; those of Writer::AddTensor.
Status AddTensors(std::span<const Tensor* const> tensors, Writer& writer);

// Room for the checksums of so many tensors in a header that is to be written.
void ReserveChecksums(uint64_t tensor_count, Metadata& metadata);

}  // namespace sluice::gguf
