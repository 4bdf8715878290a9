// WeightStore: the tensors of a model file in memory.
//
// All of them are resident: one anonymous arena, charged to `weights.pinned`, filled by reads. Each file's tensor data
// keeps its offsets modulo 4096, so that it can be read in place at whole pages. Open gives every tensor its address
// before a byte is read, so that a model is checked completely before time is spent on it; Load then reads.
//
// The file must outlive the store. Load is called once, by one thread, and works on the context's pool; afterwards the
// store is immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/reader.h"
#include "memory/arena.h"
#include "runtime/context.h"
#include "tensor/tensor_view.h"

namespace sluice::weights {

// Called now and then with bytes done and bytes in all; returns false to stop.
using Progress = std::function<bool(uint64_t done, uint64_t total)>;

class WeightStore {
 public:
  // Errors: kDoesNotFit when the ledger has no room for the weights.
  static Result<WeightStore> Open(const gguf::GgufFile& file, memory::Ledger& ledger);

  const gguf::GgufFile& file() const { return *file_; }

  // Where a tensor of this file is, or will be after Load: dims[0] columns, all others rows.
  // Precondition: the tensor's type is known.
  tensor::TensorView View(const gguf::Tensor& tensor) const;

  // Reads everything. Errors: kIo and kCorrupt, naming file and offset; kInterrupted when `progress` says so.
  Status Load(const runtime::Context& context, const Progress& progress = {});

 private:
  // The tensor data of one file of the model.
  struct Extent {
    uint64_t file_offset;  // of its first byte
    uint64_t size_bytes;
    std::byte* data;
  };

  const gguf::GgufFile* file_ = nullptr;
  memory::Arena arena_;
  std::vector<Extent> extents_;  // by shard
};

}  // namespace sluice::weights
