// Writer: makes a GGUF v3 file. First everything that the header needs is said, then the tensors' data
// streams through in the same order, so that a file of any size takes little memory and nothing is rewritten
// at the end.
//
//   Writer writer(std::move(metadata));
//   SLUICE_TRY(writer.AddTensor("output_norm.weight", DType::kF32, {4096}));
//   SLUICE_TRY_ASSIGN(auto sink, CreateFileSink(path, writer.file_bytes()));
//   SLUICE_TRY(writer.Begin(*sink));
//   SLUICE_TRY(writer.WriteData(bytes));   // as often as it takes
//   SLUICE_TRY(writer.Finish());
//
// Written files carry sluice.writer.name and sluice.writer.version. split.* keys and checksums that the
// metadata came with are left out: they were those of another file. The alignment of tensor data is
// general.alignment's, 32 by default.
//
// One thread at a time. The sink must outlive the writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/dtype.h"
#include "gguf/byte_sink.h"
#include "gguf/header.h"
#include "gguf/metadata.h"

namespace sluice::gguf {

// What a tensor takes in the header's directory.
uint64_t DirectoryBytes(const Tensor& tensor);

class Writer {
 public:
  explicit Writer(Metadata metadata);

  // Until Begin; from there on values may change, but not what the header takes (RewriteHeader).
  Metadata& metadata() { return metadata_; }
  // dims: [columns, rows, …], one to four. Errors: kInvalidArgument for a name that was added before;
  // kCorrupt for dims that ComputeSize refuses.
  Status AddTensor(std::string_view name, formats::DType dtype, std::span<const uint64_t> dims);
  Status AddTensor(std::string_view name, formats::DType dtype, std::initializer_list<uint64_t> dims) {
    return AddTensor(name, dtype, std::span(dims.begin(), dims.size()));
  }

  std::span<const Tensor> tensors() const { return tensors_; }
  // Of the header with the tensors added so far, and of the finished file. Error: kInvalidArgument when
  // general.alignment makes no sense.
  Result<uint64_t> HeaderBytes() const;
  Result<uint64_t> FileBytes() const;

  // Writes the header.
  Status Begin(ByteSink& sink);
  // The next bytes of the tensor that is being written; they must not reach beyond it.
  Status WriteData(std::span<const std::byte> bytes);
  // Writes the header again: for values that are known when the data is.
  Status RewriteHeader();
  // All data must have been written.
  bool done() const { return current_ == tensors_.size(); }
  Status Finish();

 private:
  Result<uint64_t> Alignment() const;
  std::vector<std::byte> MakeHeader(uint64_t alignment) const;
  Status Pad();

  Metadata metadata_;
  std::set<std::string, std::less<>> names_;  // owns the names that tensors_ point to
  std::vector<Tensor> tensors_;
  ByteSink* sink_ = nullptr;
  uint64_t alignment_ = 0;
  uint64_t header_bytes_ = 0;
  uint64_t position_ = 0;  // in the file
  size_t current_ = 0;     // tensor that the next data belongs to
  uint64_t written_ = 0;   // bytes of it
};

}  // namespace sluice::gguf
